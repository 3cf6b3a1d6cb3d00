//! What a call of a learner is given besides its settings, and how it ends.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use selfmate_nn::Device;
use selfmate_run::Budget;

/// What a network learns with. Threads change only the speed; devices round differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hardware {
    pub threads: usize,
    /// Where residual networks are computed. Other networks always use our own kernels.
    pub device: Device,
}

pub struct TrainOptions<'a> {
    /// The root of all randomness of the run.
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
    /// There is nothing more to learn, for this reason.
    Done(String),
    /// The guards gave up, for this reason.
    Collapsed(String),
}
