//! A run as a whole: one writer, many readers.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use selfmate_run::{Progress, Record, Run, RunReader, list};

#[test]
fn a_second_writer_is_refused_and_the_run_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("first");
    let run = Run::open(&path).unwrap();
    let error = Run::open(&path).unwrap_err().to_string();
    assert!(error.starts_with("run 'first' ("), "{error}");
    assert!(error.ends_with("): another process trains it"), "{error}");
    drop(run);
    Run::open(&path).unwrap();
}

#[test]
fn runs_are_listed_by_name_and_an_unknown_one_says_which_there_are() {
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

/// Readers see whole checkpoints and whole records whatever the writer is doing.
#[test]
fn reading_while_writing() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::open(folder.path()).unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let reader = RunReader::new(folder.path());
            let (mut newest, mut most) = (0, 0);
            loop {
                let last = is_done.load(Ordering::Acquire);
                let (checkpoint, damages) = reader.latest_checkpoint(&["model"]).unwrap();
                assert_eq!(damages, []);
                let step = checkpoint.map_or(0, |checkpoint| checkpoint.step);
                assert!(step >= newest, "step {step} after {newest}");
                newest = step;
                let records = reader.metrics().unwrap().len();
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
