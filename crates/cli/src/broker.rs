//! How to reach a NATS server, as flags.

use std::path::PathBuf;

use selfmate_cluster::Access;

/// What to show to a NATS server, and what it has to show.
#[derive(clap::Args, Clone, Debug)]
pub struct AccessArgs {
    /// Credentials for the NATS server, as nsc makes them
    #[arg(long = "nats-creds", value_name = "FILE", env = "SELFMATE_NATS_CREDS")]
    credentials: Option<PathBuf>,
    /// The seed of an nkey for the NATS server
    #[arg(
        long = "nats-nkey",
        value_name = "FILE",
        env = "SELFMATE_NATS_NKEY",
        conflicts_with = "credentials"
    )]
    nkey: Option<PathBuf>,
    /// The certificate of whoever signed the NATS server's; asks for TLS
    #[arg(long = "nats-ca", value_name = "FILE", env = "SELFMATE_NATS_CA")]
    authority: Option<PathBuf>,
    /// A certificate to show to the NATS server
    #[arg(long = "nats-cert", value_name = "FILE", requires = "key")]
    certificate: Option<PathBuf>,
    /// The key of that certificate
    #[arg(long = "nats-key", value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,
}

impl AccessArgs {
    /// With an address.
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
