//! Flags for the connection to a NATS server.

use std::path::PathBuf;

use selfmate_cluster::Access;

/// Credentials and certificates for a NATS server.
#[derive(clap::Args, Clone, Debug)]
pub struct AccessArgs {
    /// Credentials file for the NATS server, as created by nsc
    #[arg(long = "nats-creds", value_name = "FILE", env = "SELFMATE_NATS_CREDS")]
    credentials: Option<PathBuf>,
    /// File with the nkey seed for the NATS server
    #[arg(
        long = "nats-nkey",
        value_name = "FILE",
        env = "SELFMATE_NATS_NKEY",
        conflicts_with = "credentials"
    )]
    nkey: Option<PathBuf>,
    /// Certificate of the authority that signed the NATS server's certificate; enables TLS
    #[arg(long = "nats-ca", value_name = "FILE", env = "SELFMATE_NATS_CA")]
    authority: Option<PathBuf>,
    /// Client certificate for the NATS server
    #[arg(long = "nats-cert", value_name = "FILE", requires = "key")]
    certificate: Option<PathBuf>,
    /// Private key of the client certificate
    #[arg(long = "nats-key", value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,
}

impl AccessArgs {
    pub fn access(&self, url: &str) -> Access {
        Access {
            url: url.to_owned(),
            credentials: self.credentials.clone(),
            nkey: self.nkey.clone(),
            authority: self.authority.clone(),
            certificate: self.certificate.clone().zip(self.key.clone()),
        }
    }
}
