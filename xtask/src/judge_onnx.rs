//! `cargo xtask judge-onnx`: compares exported networks in onnxruntime with our own inference.
//!
//! Each kind of network is exported with 100 positions and our outputs; `judges/onnx.py` runs the
//! file and compares.

use std::{fs, process::Command};

use anyhow::{Context, Result};

use crate::{
    process::{root, run as run_command, target_dir, test_binary},
    setup,
};

/// Fails when any output differs by more than 1e-4.
pub fn run() -> Result<()> {
    let python = setup::judge_python()?;
    setup::ONNX_RUNTIME.meet()?;
    let binary = test_binary()?;
    let folder = target_dir()?.join("judge-onnx");
    if folder.exists() {
        fs::remove_dir_all(&folder).context("cannot remove the folder of the last run")?;
    }
    let runs = folder.join("runs");
    fs::create_dir_all(&runs).with_context(|| format!("cannot create {}", folder.display()))?;
    // Trained a little, so that biases and batch norms differ from their initial values.
    let kinds = [
        ("plain", "network.squeeze=0"),
        ("squeezed", "network.squeeze=8"),
        ("scalar", "network.value=scalar"),
    ];
    for (name, setting) in kinds {
        let mut train = Command::new(&binary);
        train.args(["train", "alphazero", "--preset", "tiny", "--games", "8", "--plain"]);
        train.args(["--run", name, "--set", setting, "--runs"]).arg(&runs);
        run_command(&mut train)?;
    }
    for network in ["plain", "squeezed", "scalar", "default"] {
        let [model, examples] =
            ["onnx", "safetensors"].map(|end| folder.join(format!("{network}.{end}")));
        let mut export = Command::new(&binary);
        export.args(["export", network, "--onnx"]).arg(&model).arg("--examples").arg(&examples);
        run_command(export.arg("--runs").arg(&runs))?;
        let mut judge = Command::new(&python);
        judge.args(["-B", "xtask/judges/onnx.py"]).arg(&model).arg(&examples);
        run_command(judge.current_dir(root())).with_context(|| {
            format!("onnxruntime gives other outputs for the network '{network}'")
        })?;
    }
    Ok(())
}
