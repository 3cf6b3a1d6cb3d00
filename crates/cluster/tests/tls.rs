//! TLS as in `deploy/nats/tls.conf`: a client accepts the server only with the right authority.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use selfmate_cluster::broker::{Broker, Role};
use selfmate_cluster::{Access, ClusterError, Storage, WorkerName};
use server::Server;

fn openssl(folder: &Path, arguments: &str) {
    let output = Command::new("openssl").current_dir(folder).args(arguments.split(' ')).output();
    let output = output.expect("openssl: `cargo xtask setup` installs it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Creates an authority and a server certificate signed by it. Returns the authority's file.
fn certify(folder: &Path) -> PathBuf {
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    let authority =
        format!("req -x509 {key} -keyout ca-key.pem -out ca.pem -subj /CN=test -days 2");
    openssl(folder, &authority);
    openssl(folder, &format!("req {key} -keyout server-key.pem -out server.csr -subj /CN=server"));
    fs::write(folder.join("extension"), "subjectAltName=IP:127.0.0.1").unwrap();
    openssl(
        folder,
        "x509 -req -in server.csr -CA ca.pem -CAkey ca-key.pem -CAcreateserial -days 2 \
         -extfile extension -out server-cert.pem",
    );
    folder.join("ca.pem")
}

#[test]
fn only_the_right_authority_is_accepted() {
    let (brokers, strangers) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/nats/tls.conf");
    fs::copy(example, brokers.path().join("tls.conf")).unwrap();
    let (ours, theirs) = (certify(brokers.path()), certify(strangers.path()));
    let server = Server::with(brokers.path(), "include \"tls.conf\"");
    let url = server.url().replace("nats://", "tls://");
    let name = WorkerName::new("a").unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let connect = |authority: Option<PathBuf>| {
        let access = Access { url: url.clone(), authority, ..Access::default() };
        runtime.block_on(async {
            let broker = Broker::connect(&access, Role::Worker(&name)).await?;
            broker.set_up(Storage::default()).await
        })
    };
    connect(Some(ours)).unwrap();
    for authority in [Some(theirs), None] {
        let refused = connect(authority);
        assert!(matches!(refused, Err(ClusterError::Unreachable { .. })), "{refused:?}");
    }
}
