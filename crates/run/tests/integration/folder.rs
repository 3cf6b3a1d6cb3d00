//! A whole run folder: one writer, many readers.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use selfmate_run::{Latest, Progress, Record, Run, RunReader, list};

#[test]
fn a_second_writer_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("first");
    let run = Run::open(&path).unwrap();
    let error = Run::open(&path).unwrap_err().to_string();
    assert!(error.starts_with("run 'first' ("), "{error}");
    assert!(error.ends_with("): another process is training it"), "{error}");
    drop(run);
    Run::open(&path).unwrap();
}

#[test]
fn runs_are_listed_by_name_and_unknown_names_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    assert!(list(&folder.path().join("nowhere")).unwrap().is_empty());
    let error = RunReader::find(folder.path(), "x").unwrap_err().to_string();
    assert!(error.starts_with("no run 'x' in ") && error.ends_with(": there are none"), "{error}");
    for name in ["b", "a"] {
        let mut run = Run::open(&folder.path().join(name)).unwrap();
        assert_eq!(run.config().unwrap(), None);
        run.write_config("seed = 1\n").unwrap();
    }
    fs::create_dir(folder.path().join("no run")).unwrap();
    assert_eq!(list(folder.path()).unwrap(), ["a", "b"]);
    let error = RunReader::find(folder.path(), "x").unwrap_err().to_string();
    assert!(error.ends_with(": there are a, b"), "{error}");
    let reader = RunReader::find(folder.path(), "b").unwrap();
    assert_eq!(
        (reader.name().as_str(), reader.config().unwrap()),
        ("b", Some("seed = 1\n".into()))
    );
}

#[test]
fn files_deleted_during_training_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let record = Record::Progress(Progress::default());
    for name in ["metrics.jsonl", "lock", "run.toml", "checkpoints", "games", ""] {
        let path = folder.path().join(format!("without {name}"));
        let mut run = Run::open(&path).unwrap();
        run.append_metric(&record).unwrap();
        run.write_config("seed = 1\n").unwrap();
        run.save_checkpoint(1, &[("model", b"weights")]).unwrap();
        let gone = if name.is_empty() { path.clone() } else { path.join(name) };
        match gone.is_dir() {
            true => fs::remove_dir_all(&gone).unwrap(),
            false => fs::remove_file(&gone).unwrap(),
        }
        let expected = format!("{}: deleted, moved or replaced while", gone.display());
        let errors = [
            run.append_metric(&record).unwrap_err().to_string(),
            run.save_checkpoint(2, &[("model", b"weights")]).unwrap_err().to_string(),
        ];
        for error in errors {
            assert!(error.starts_with(&expected), "{error}");
        }
        assert!(!gone.exists(), "{name} was made again");
    }
}

/// A second training run in the same place would have another lock file.
#[cfg(unix)]
#[test]
fn a_replaced_lock_file_is_detected() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::open(folder.path()).unwrap();
    let lock = folder.path().join("lock");
    fs::remove_file(&lock).unwrap();
    let _other = Run::open(folder.path()).unwrap();
    let error = run.append_metric(&Record::Progress(Progress::default())).unwrap_err();
    assert!(error.to_string().starts_with(&format!("{}: ", lock.display())), "{error}");
}

/// Readers see complete checkpoints and records while a writer is active.
#[test]
fn readers_work_while_a_writer_is_active() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::open(folder.path()).unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let reader = RunReader::new(folder.path());
            let (mut newest, mut most) = (0, 0);
            loop {
                let last = is_done.load(Ordering::Acquire);
                let Latest { checkpoint, damages } = reader.latest_checkpoint(&["model"]).unwrap();
                assert_eq!(damages, []);
                let step = checkpoint.map_or(0, |checkpoint| checkpoint.step);
                assert!(step >= newest, "step {step} after {newest}");
                newest = step;
                let records = reader.metrics().unwrap().0.len();
                assert!(records >= most, "{records} records after {most}");
                most = records;
                if last {
                    return (newest, most);
                }
            }
        });
        for step in 1..=60 {
            let weights = vec![step as u8; 2000];
            run.save_checkpoint(step, &[("model", &weights), ("optimiser", &weights)]).unwrap();
            run.append_metric(&Record::Progress(Progress { steps: step, ..Progress::default() }))
                .unwrap();
            if step > 1 {
                run.thin_checkpoint(step - 1, &["optimiser"]).unwrap();
            }
            if step > 3 {
                run.remove_checkpoint(step - 3).unwrap();
            }
        }
        is_done.store(true, Ordering::Release);
        assert_eq!(reading.join().unwrap(), (60, 60));
    });
}
