//! nats-server accepts the example configs.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod server;

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn nats_server_accepts_the_example_configs() {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/nats");
    let folder = tempfile::tempdir().unwrap();
    fs::copy(deploy.join("accounts.conf"), folder.path().join("accounts.conf")).unwrap();
    for name in ["single.conf", "node-1.conf", "node-2.conf", "node-3.conf"] {
        let text = fs::read_to_string(deploy.join(name)).unwrap();
        let guarded = text.replace("# include \"accounts.conf\"", "include \"accounts.conf\"");
        assert_ne!(text, guarded, "{name} includes accounts.conf in a comment");
        for config in [text, guarded] {
            let path = folder.path().join(name);
            fs::write(&path, config).unwrap();
            let output = Command::new(server::program()).arg("-t").arg("-c").arg(&path).output();
            let output = output.unwrap();
            let log = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{name}: {log}");
        }
    }
}
