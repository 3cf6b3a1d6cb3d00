//! Workers that send invalid or forged games, over a real nats-server.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod server;
mod tiny;

use std::sync::atomic::AtomicBool;
use std::thread;

use selfmate_cluster::broker::{Broker, Role};
use selfmate_cluster::envelope::{Envelope, MAX_ENVELOPE, MAX_RECORD};
use selfmate_cluster::hash::Hash;
use selfmate_cluster::job::{GenerationJob, Job, MAX_JOB, Task as JobTask};
use selfmate_cluster::message::Grant;
use selfmate_cluster::subject::GAMES;
use selfmate_cluster::{ClusterError, Member, WorkerName, status};
use selfmate_nn::Model;
use selfmate_run::GameRecord;
use selfmate_selfplay::{FinishedGame, Generation, SelfPlayer, evaluators};
use server::Server;
use tiny::{Notes, access, ask, beside_workers, cluster, expected, message, train};

/// A malicious worker.
struct Mallory {
    name: WorkerName,
    broker: Broker,
}

/// A game that was lent to a worker.
struct Task {
    job: Hash,
    grant: Grant,
    generation: Generation,
    model: Model,
}

impl Mallory {
    async fn connect(server: &Server, name: &str) -> Mallory {
        let name = WorkerName::new(name).unwrap();
        let broker = Broker::connect(&access(server), Role::Worker(&name)).await.unwrap();
        Mallory { name, broker }
    }

    /// Asks until a game is lent. The error is the reason why this worker gets none.
    async fn ask(&self) -> Result<Task, String> {
        let (job, grant) = ask(&self.broker, &self.name).await?;
        let document = self.broker.fetch("job", &job, MAX_JOB).await.unwrap();
        let JobTask::Generation(document) = Job::parse(&document).unwrap().task else {
            panic!("expected a generation")
        };
        let document: GenerationJob = document;
        let network = self.broker.fetch("network", &document.network, 1 << 24).await.unwrap();
        let (model, _) = Model::decode(&network).unwrap();
        Ok(Task { job, grant, generation: document.generation(), model })
    }

    /// Sends any bytes as the record of a game.
    async fn send(&self, task: &Task, token: Hash, record: &[u8]) -> Result<(), ClusterError> {
        let envelope = Envelope::of_bytes(task.job, token, task.grant.number, 1, record);
        self.send_bytes(message(&envelope)).await
    }

    async fn send_bytes(&self, bytes: Vec<u8>) -> Result<(), ClusterError> {
        // A new id for each message: the broker drops messages with a known id.
        let id = Hash::of(&[self.name.as_str().as_bytes(), &bytes].concat());
        self.broker.send(self.name.subject(GAMES), &id, bytes).await
    }
}

impl Task {
    fn play(&self, number: u64, generation: &Generation) -> FinishedGame {
        let mut player = SelfPlayer::new(&generation.config, evaluators(&self.model)());
        let (mut next, mut played) = (Some(number), None);
        let stop = AtomicBool::new(false);
        player.play(generation, || next.take(), |game| played = Some(game), &stop);
        played.unwrap()
    }

    fn honest(&self) -> GameRecord {
        self.play(self.grant.number, &self.generation).record
    }

    /// The encoded game after a change of its record.
    fn changed(&self, change: impl FnOnce(&mut GameRecord)) -> Vec<u8> {
        let mut record = self.honest();
        change(&mut record);
        record.encode().unwrap()
    }

    /// The encoded game after a change of its bytes.
    fn broken(&self, change: impl FnOnce(&mut Vec<u8>, &GameRecord)) -> Vec<u8> {
        let record = self.honest();
        let mut bytes = record.encode().unwrap();
        change(&mut bytes, &record);
        bytes
    }
}

/// The index of the outcome's byte. The start's text, the number of moves and the moves follow it.
fn outcome_at(record: &GameRecord) -> usize {
    1 + number_length(record.number) + number_length(record.network)
}

fn number_length(number: u64) -> usize {
    (64 - number.leading_zeros() as usize).div_ceil(7).max(1)
}

/// An attack that leads to a ban.
struct Attack {
    name: &'static str,
    forge: fn(&Task) -> Vec<u8>,
    /// The key under which the status report counts the rejection.
    kind: &'static str,
    /// Part of the reason of the ban.
    reason: &'static str,
}

const ATTACKS: &[Attack] = &[
    Attack {
        name: "illegal-move",
        forge: |task| {
            task.broken(|bytes, record| {
                let start = record.start.as_ref().map_or(0, String::len);
                let moves = record.moves.len();
                let first = outcome_at(record) + 2 + start + number_length(moves as u64);
                bytes[first + 2 * (moves - 1)..][..2].fill(0);
            })
        },
        kind: "record",
        reason: "is not legal",
    },
    Attack {
        name: "wrong-result",
        forge: |task| {
            task.broken(|bytes, record| {
                let place = outcome_at(record);
                // Mate by the wrong side.
                bytes[place] = if bytes[place] == 0x10 { 0x20 } else { 0x10 };
            })
        },
        kind: "record",
        reason: "outcome",
    },
    Attack {
        name: "empty-policy",
        forge: |task| {
            task.broken(|bytes, record| {
                let moves = record.positions.last().unwrap().policy.len();
                let end = bytes.len();
                bytes[end - moves..].fill(0);
            })
        },
        kind: "record",
        reason: "sums to 0.0000: expected 1",
    },
    Attack {
        name: "value-out-of-range",
        forge: |task| {
            task.broken(|bytes, record| {
                let moves = record.positions.last().unwrap().policy.len();
                let value = bytes.len() - moves - 3;
                bytes[value..value + 2].copy_from_slice(&i16::MIN.to_le_bytes());
            })
        },
        kind: "record",
        reason: "the value is",
    },
    Attack {
        name: "unknown-network",
        forge: |task| task.changed(|record| record.network += 1),
        kind: "mismatch",
        reason: "played by the network of step",
    },
    Attack {
        name: "other-start",
        forge: |task| {
            let other = task.play(task.grant.number + 1, &task.generation).record;
            GameRecord { number: task.grant.number, ..other }.encode().unwrap()
        },
        kind: "mismatch",
        reason: "is not that of its number",
    },
    Attack {
        name: "fewer-positions",
        forge: |task| task.changed(|record| _ = record.positions.pop()),
        kind: "mismatch",
        reason: "recorded positions",
    },
    Attack {
        name: "another-number",
        forge: |task| task.play(task.grant.number + 1, &task.generation).record.encode().unwrap(),
        kind: "number",
        reason: "in the envelope of game",
    },
    Attack {
        name: "another-spelling",
        forge: |task| {
            task.broken(|bytes, record| {
                let last = number_length(record.number);
                bytes[last] |= 0x80;
                bytes.insert(last + 1, 0);
            })
        },
        kind: "spelling",
        reason: "not in canonical form",
    },
    Attack {
        name: "too-large",
        forge: |_| (0..=MAX_RECORD).map(|place| place as u8).collect(),
        kind: "packing",
        reason: "decompresses to more than",
    },
    Attack {
        name: "bomb",
        forge: |_| vec![0; 1 << 26],
        kind: "packing",
        reason: "cannot be decompressed",
    },
    Attack {
        name: "made-up-value",
        forge: |task| task.changed(|record| record.positions[0].value = 0.25),
        kind: "audit",
        reason: "failed the audit",
    },
    Attack {
        name: "cheaper-search",
        forge: |task| {
            let generation = Generation { simulations: 2, ..task.generation.clone() };
            task.play(task.grant.number, &generation).record.encode().unwrap()
        },
        kind: "audit",
        reason: "failed the audit",
    },
];

/// Sends forged games until the worker is banned.
async fn attack(server: &Server, attack: &Attack) {
    let mallory = Mallory::connect(server, attack.name).await;
    while let Ok(task) = mallory.ask().await {
        mallory.send(&task, task.grant.token, &(attack.forge)(&task)).await.unwrap();
    }
}

/// Sends messages that anyone could have sent, so that no one is banned for them.
async fn send_without_proof(server: &Server) {
    let [thief, victim] =
        [Mallory::connect(server, "thief").await, Mallory::connect(server, "victim").await];
    let task = victim.ask().await.unwrap();
    let honest = task.honest().encode().unwrap();
    // With another worker's token, with a guessed token, and bytes that are not an envelope.
    thief.send(&task, task.grant.token, &honest).await.unwrap();
    thief.send(&task, Hash::of(b"guessed"), &honest).await.unwrap();
    thief.send_bytes(b"nonsense".to_vec()).await.unwrap();
    // The broker itself refuses messages that are larger than any game.
    let huge = thief.send_bytes(vec![0; 2 * MAX_ENVELOPE]).await;
    assert!(matches!(huge, Err(ClusterError::Broker { .. })), "{huge:?}");
    // The same game in two messages counts once.
    victim.send(&task, task.grant.token, &honest).await.unwrap();
    let envelope = Envelope::of_bytes(task.job, task.grant.token, task.grant.number, 2, &honest);
    victim.send_bytes(message(&envelope)).await.unwrap();
}

#[test]
fn every_attack_is_rejected_and_counted_and_changes_nothing() {
    let (brokers, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::single(brokers.path());
    let mut cluster = cluster(&server, folder.path(), 1.0);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut notes = Notes::default();
    let (files, report) = thread::scope(|scope| {
        let learner = scope.spawn(|| train(folder.path(), &mut cluster, &mut notes));
        // Checked below: a panic here would leave the learner waiting for a worker.
        for forgery in ATTACKS {
            runtime.block_on(attack(&server, forgery));
        }
        runtime.block_on(send_without_proof(&server));
        // Only now does an honest worker play.
        let (files, _) = beside_workers(&server, &["honest"], || learner.join().unwrap());
        (files, status(&access(&server)))
    });
    assert_eq!(files, expected(), "the run is the same as without attacks");
    let report = report.unwrap();
    let member = |name: &str| -> &Member {
        report.workers.iter().find(|member| member.name.as_str() == name).unwrap()
    };
    for Attack { name, kind, reason, .. } in ATTACKS {
        let ban = &report.bans[&WorkerName::new(name).unwrap()];
        assert!(ban.contains(reason), "{name}: {ban}");
        assert!(member(name).rejected[*kind] >= 1, "{name}: {:?}", member(name).rejected);
        assert!(report.rejected[*kind] >= 1, "{name}");
        assert!(notes.0.iter().any(|note| note.contains(name)), "{name} is noted");
    }
    assert_eq!(report.bans.len(), ATTACKS.len());
    assert_eq!(member("thief").rejected["unasked"], 3);
    assert_eq!((member("thief").games, member("victim").games), (0, 1));
    assert_eq!((member("victim").duplicates, member("victim").rejected.len()), (1, 0));
    // Games that the honest worker sent after the end of their generation are late.
    let honest = member("honest");
    assert!(honest.rejected.keys().all(|kind| kind == "late"), "{:?}", honest.rejected);
    let taken: u64 = report.workers.iter().map(|member| member.games).sum();
    assert!(taken >= tiny::GAMES, "{taken}");
}
