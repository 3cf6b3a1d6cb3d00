//! Checkpoints: every kind of damage is detected and reported, and a kill loses nothing.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use selfmate_chess::Seed;
use selfmate_run::{Latest, Run, RunReader};

const NOTHING: Latest = Latest { checkpoint: None, damages: Vec::new() };

const FILES: [(&str, &[u8]); 3] = [
    ("model.safetensors", b"weights of a network"),
    ("optimiser", b"momenta"),
    ("state.toml", b""),
];

/// A run with checkpoints of steps 10 and 20.
fn run(folder: &Path) -> Run {
    let mut run = Run::open(folder).unwrap();
    run.save_checkpoint(10, &[("model.safetensors", b"older weights")]).unwrap();
    run.save_checkpoint(20, &FILES).unwrap();
    run
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

fn put(path: &Path, place: usize, byte: u8) {
    let mut file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(place as u64)).unwrap();
    file.write_all(&[byte]).unwrap();
}

#[test]
fn the_newest_checkpoint_is_loaded_with_all_files() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = run(folder.path());
    let Latest { checkpoint, damages } = run.recover_checkpoint(&["optimiser"]).unwrap();
    let checkpoint = checkpoint.unwrap();
    assert!(damages.is_empty());
    assert_eq!(checkpoint.step, 20);
    for (name, bytes) in FILES {
        assert_eq!(checkpoint.files[name], bytes);
    }
    assert_eq!(run.load_checkpoint(10).unwrap().files["model.safetensors"], b"older weights");
    let error = run.load_checkpoint(15).unwrap_err().to_string();
    assert!(error.ends_with("no checkpoint of step 15: there are 10, 20"), "{error}");
    assert_eq!(run.latest_checkpoint(&["no such file"]).unwrap(), NOTHING);
    // Saving the same step again replaces it.
    run.save_checkpoint(20, &[("model.safetensors", b"new")]).unwrap();
    assert_eq!(run.load_checkpoint(20).unwrap().files["model.safetensors"], b"new");
    assert_eq!(names(&folder.path().join("checkpoints")), ["10", "20"]);
    for files in [&[("../x", &b""[..])][..], &[("a", b""), ("a", b"")], &[("MANIFEST", b"")]] {
        assert!(run.save_checkpoint(30, files).is_err());
    }
}

#[cfg(unix)]
#[test]
fn a_dangling_link_is_not_a_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let run = run(folder.path());
    std::os::unix::fs::symlink("nowhere", folder.path().join("checkpoints/99")).unwrap();
    assert_eq!(run.latest_checkpoint(&["optimiser"]).unwrap().checkpoint.unwrap().step, 20);
    assert_eq!(run.latest_checkpoint(&["no such file"]).unwrap(), NOTHING);
}

#[test]
fn a_flipped_bit_is_reported_and_the_previous_checkpoint_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let run = run(folder.path());
    for name in ["model.safetensors", "optimiser", "MANIFEST"] {
        let path = folder.path().join("checkpoints/20").join(name);
        let whole = fs::read(&path).unwrap();
        for bit in 0..8 * whole.len() {
            put(&path, bit / 8, whole[bit / 8] ^ 1 << (bit % 8));
            let Latest { checkpoint, damages } =
                run.latest_checkpoint(&["model.safetensors"]).unwrap();
            assert_eq!(checkpoint.unwrap().step, 10, "{name}, bit {bit}");
            assert_eq!((damages.len(), &damages[0].path), (1, &path), "{name}, bit {bit}");
            put(&path, bit / 8, whole[bit / 8]);
        }
    }
    assert_eq!(run.latest_checkpoint(&[]).unwrap().checkpoint.unwrap().step, 20);
}

#[test]
fn flipped_bits_of_a_large_file_are_detected() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::open(folder.path()).unwrap();
    let mut rng = Seed::new(1).rng();
    let bytes: Vec<u8> = (0..300_000).map(|_| rng.bits() as u8).collect();
    run.save_checkpoint(1, &[("model", &bytes)]).unwrap();
    let path = folder.path().join("checkpoints/1/model");
    for _ in 0..200 {
        let (place, bit) = (rng.below(bytes.len()), rng.below(8));
        put(&path, place, bytes[place] ^ 1 << bit);
        let error = run.load_checkpoint(1).unwrap_err().to_string();
        assert!(error.ends_with("1/model: does not match its hash in MANIFEST"), "{error}");
        put(&path, place, bytes[place]);
    }
}

#[test]
fn writers_set_damaged_checkpoints_aside_and_readers_do_not() {
    let damage: [fn(&Path); 5] = [
        |folder| fs::write(folder.join("optimiser"), "short").unwrap(),
        |folder| fs::remove_file(folder.join("model.safetensors")).unwrap(),
        |folder| fs::remove_file(folder.join("MANIFEST")).unwrap(),
        |folder| fs::write(folder.join("MANIFEST"), "").unwrap(),
        |folder| {
            // A valid manifest, but of another step.
            fs::copy(folder.join("../10/MANIFEST"), folder.join("MANIFEST")).unwrap();
        },
    ];
    for (index, damage) in damage.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let mut run = run(folder.path());
        let checkpoints = folder.path().join("checkpoints");
        damage(&checkpoints.join("20"));
        let reader = RunReader::new(folder.path());
        let latest = reader.latest_checkpoint(&[]).unwrap();
        let said = latest.skipped_checkpoints().unwrap().to_string();
        assert!(said.contains("/20/") && said.ends_with("; step 10 is used instead"), "{said}");
        let Latest { checkpoint, damages } = latest;
        assert_eq!((checkpoint.unwrap().step, damages.len()), (10, 1), "{index}");
        assert_eq!(names(&checkpoints), ["10", "20"]);
        let Latest { checkpoint, damages: same } = run.recover_checkpoint(&[]).unwrap();
        assert_eq!((checkpoint.unwrap().step, same), (10, damages), "{index}");
        assert_eq!(names(&checkpoints), ["10", "20.damaged"]);
        assert_eq!(run.recover_checkpoint(&[]).unwrap().damages, []);
    }
}

#[test]
fn interrupted_operations_are_completed() {
    let folder = tempfile::tempdir().unwrap();
    drop(run(folder.path()));
    let checkpoints = folder.path().join("checkpoints");
    // Killed while writing step 30.
    fs::create_dir(checkpoints.join("30.partial")).unwrap();
    fs::write(checkpoints.join("30.partial/model.safetensors"), "half").unwrap();
    // Killed while replacing step 20, before and after the new checkpoint was moved into place.
    fs::rename(checkpoints.join("20"), checkpoints.join("20.old")).unwrap();
    fs::create_dir(checkpoints.join("10.old")).unwrap();
    fs::write(folder.path().join("run.toml.partial"), "half").unwrap();
    let run = Run::open(folder.path()).unwrap();
    assert_eq!(names(&checkpoints), ["10", "20"]);
    assert_eq!(run.load_checkpoint(20).unwrap().files.len(), 3);
    assert!(!folder.path().join("run.toml.partial").exists());
}

#[test]
fn an_interrupted_thinning_is_not_damage() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = run(folder.path());
    let place = folder.path().join("checkpoints/20");
    run.thin_checkpoint(20, &["optimiser", "no such file"]).unwrap();
    assert_eq!(names(&place), ["MANIFEST", "model.safetensors", "state.toml"]);
    assert_eq!(run.load_checkpoint(20).unwrap().files.len(), 2);
    // Killed between the new MANIFEST and the removal: the file still exists.
    fs::write(place.join("optimiser"), "momenta").unwrap();
    assert_eq!(run.load_checkpoint(20).unwrap().files.len(), 2);
    drop(run);
    let mut run = Run::open(folder.path()).unwrap();
    assert_eq!(names(&place), ["MANIFEST", "model.safetensors", "state.toml"]);
    // A checkpoint without the required files is skipped, and it is not damage.
    run.save_checkpoint(5, &FILES).unwrap();
    let Latest { checkpoint, damages } = run.recover_checkpoint(&["optimiser"]).unwrap();
    assert_eq!((checkpoint.unwrap().step, damages), (5, vec![]));
    run.remove_checkpoint(20).unwrap();
    run.remove_checkpoint(20).unwrap();
    assert_eq!(run.steps().unwrap(), [5, 10]);
}
