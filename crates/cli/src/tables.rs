//! The flag for tablebase folders.

use anyhow::Context;
use selfmate_arena::Registry;
use selfmate_chess::tablebase::Syzygy;

/// The environment variable with the folders, for everything except measured games.
pub const VARIABLE: &str = "SELFMATE_SYZYGY";

#[derive(clap::Args, Clone, Debug)]
pub struct TablesArgs {
    /// Folders with Syzygy tables, separated as in PATH
    #[arg(long, value_name = "PATH", env = VARIABLE)]
    pub syzygy: Option<String>,
}

impl TablesArgs {
    /// True when folders are set by the flag or the variable.
    pub fn is_named(&self) -> bool {
        self.folders().is_some()
    }

    fn folders(&self) -> Option<&str> {
        self.syzygy.as_deref().filter(|folders| !folders.is_empty())
    }

    pub fn open(&self) -> anyhow::Result<Syzygy> {
        let folders = self.folders().with_context(|| {
            format!("no tablebases: expected --syzygy PATH, or the folders in {VARIABLE}")
        })?;
        Syzygy::open(folders).context("--syzygy")
    }
}

/// Prints, after the games, which tables could not be read.
pub fn report_damage(registry: &Registry) {
    for damage in registry.tablebases().damage() {
        eprintln!("selfmate: a damaged table was not used: {damage}");
    }
}
