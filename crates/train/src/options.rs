//! The options of a training besides the settings, and how it ended.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use selfmate_nn::Device;
use selfmate_nn::sparse::TrainError;
use selfmate_run::Budget;

use crate::error::TrainingError;

/// The hardware to train on. Threads only affect the speed; devices round differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hardware {
    pub threads: usize,
    /// The device of residual networks. Other networks always use [`Device::Cpu`].
    pub device: Device,
}

impl Hardware {
    /// A pool with this many threads.
    pub fn pool(self) -> Result<rayon::ThreadPool, TrainingError> {
        let threads = self.threads.max(1);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        Ok(pool.map_err(|error| TrainError::Threads { threads, message: error.to_string() })?)
    }
}

pub struct TrainOptions<'a> {
    /// The seed of everything random in the run.
    pub seed: u64,
    pub budget: Budget,
    pub hardware: Hardware,
    /// Ends the training when set.
    pub stop: &'a Arc<AtomicBool>,
}

/// Why a training ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The budget is spent.
    Finished,
    /// A stop was requested.
    Stopped,
    /// There is nothing more to learn; the text is the reason.
    Done(String),
    /// The guards stopped the run; the text is the reason.
    Collapsed(String),
}
