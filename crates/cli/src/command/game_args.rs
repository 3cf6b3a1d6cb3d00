//! The flags that `match`, `ladder`, `rate` and `selfplay` share, and how they run games.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use selfmate_arena::adjudicate::{Adjudication, DrawRule, ResignRule, ResignSides};
use selfmate_arena::remote::RemoteGames;
use selfmate_arena::tablebase_cache::TablebaseRule;
use selfmate_arena::{GameSettings, MatchLimit, MatchRun, OpeningSource, Registry, TimeControl};
use selfmate_chess::tablebase::Syzygy;
use selfmate_cluster::lease::Terms;
use selfmate_cluster::{RemoteMatch, Storage, remote_match};

use crate::broker::AccessArgs;
use crate::file::check_distinct;
use crate::limit::LimitArgs;
use crate::number::whole_numbers;
use crate::player::{DeviceArgs, with_flags};
use crate::progress::CleanStop;

/// How games are played.
#[derive(clap::Args)]
pub struct PlayArgs {
    #[command(flatten)]
    limit: LimitArgs,
    #[command(flatten)]
    device: DeviceArgs,
    /// A clock: seconds and increment, such as 10+0.1, 1:30+1 or 40/60
    #[arg(long, value_name = "TC")]
    tc: Option<TimeControl>,
    /// Openings: an EPD or PGN file (plain or zipped), or random:PLIES [default: built in]
    #[arg(long, value_name = "FILE", value_parser = openings)]
    openings: Option<OpeningSource>,
    /// Seed of openings and players
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Games at the same time, each on a thread [default: one per core]
    #[arg(long, visible_alias = "threads", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    concurrency: Option<u16>,
    /// Adjudicate a draw: from move M on, C moves of each side within S centipawns, as M,C,S
    #[arg(long, value_name = "M,C,S", value_parser = draw_rule)]
    draw: Option<DrawRule>,
    /// Adjudicate a loss: C moves at minus S centipawns or worse, as C,S
    #[arg(long, value_name = "C,S", value_parser = resign_rule)]
    resign: Option<ResignRule>,
    /// Truncate games after this many plies; in matches and ratings they count as drawn
    #[arg(long, value_name = "PLIES")]
    max_plies: Option<u32>,
    /// Adjudicate games with the Syzygy tables in these folders
    #[arg(long, visible_alias = "adjudicate-syzygy", value_name = "PATH")]
    tb: Option<String>,
    /// Let selfmate's own searching players use the Syzygy tables in these folders, unless they
    /// name their own
    #[arg(long, value_name = "PATH")]
    syzygy: Option<String>,
}

impl PlayArgs {
    /// The settings of each game; `default` is the limit when none is given.
    pub fn settings(&self, default: MatchLimit) -> anyhow::Result<GameSettings> {
        let limit = self.limit.to_match_limit(self.tc, default);
        let tables = match &self.tb {
            Some(folders) => {
                Some(TablebaseRule::new(Arc::new(Syzygy::open(folders).context("--tb")?)).0)
            }
            None => None,
        };
        let adjudication = Adjudication {
            draw: self.draw,
            resign: self.resign,
            max_plies: self.max_plies,
            tables,
        };
        Ok(GameSettings { limit, adjudication, ..GameSettings::default() })
    }

    /// A player's spec with what the flags set for all players.
    pub fn player(&self, registry: &Registry, text: &str) -> anyhow::Result<String> {
        let text = with_flags(registry, text, &self.limit, self.device)?;
        match &self.syzygy {
            Some(folders) => Ok(registry.with_option(&text, "syzygy", folders)?),
            None => Ok(text),
        }
    }

    /// True if `--sims` is the only limit.
    pub fn has_only_sims(&self) -> bool {
        self.limit.sims.is_some()
            && self.limit.to_match_limit(self.tc, MatchLimit::default()) == MatchLimit::default()
    }

    pub fn openings(&self) -> OpeningSource {
        self.openings.clone().unwrap_or_default()
    }

    /// How games are run: on all cores, until Ctrl-C.
    pub fn run(&self, registry: &Registry) -> anyhow::Result<MatchRun> {
        let adjudicator = match &self.tb {
            Some(folders) => {
                Some(TablebaseRule::new(registry.tablebases().open(folders).context("--tb")?).1)
            }
            None => None,
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let concurrency = self.concurrency.map_or(cores, usize::from);
        let CleanStop { stop, begun } = CleanStop::on_signal()?;
        Ok(MatchRun { concurrency, stop, begun, adjudicator, ..MatchRun::default() })
    }
}

/// How the games of matches are played, stored and shared with workers.
#[derive(clap::Args)]
pub struct GameArgs {
    #[command(flatten)]
    pub play: PlayArgs,
    /// Store finished games here; running the same command again resumes
    #[arg(long, value_name = "PATH")]
    store: Option<PathBuf>,
    /// Write the games to a PGN file
    #[arg(long, value_name = "FILE")]
    pgn: Option<PathBuf>,
    /// Let workers play the games, through this NATS server (several separated by commas)
    #[arg(long, value_name = "URL", conflicts_with_all = ["tc", "movetime", "tb", "syzygy"])]
    nats: Option<String>,
    #[command(flatten)]
    access: AccessArgs,
}

impl GameArgs {
    /// How games are run: here or by workers, until Ctrl-C.
    pub fn run(&self, registry: &Registry) -> anyhow::Result<MatchRun> {
        check_distinct(&[("--store", self.store.as_deref()), ("--pgn", self.pgn.as_deref())]);
        let run = self.play.run(registry)?;
        Ok(MatchRun {
            remote: self.remote(run.concurrency)?,
            store: self.store.clone(),
            pgn: self.pgn.clone(),
            ..run
        })
    }

    /// The workers that play the games, if `--nats` is given.
    fn remote(&self, threads: usize) -> anyhow::Result<Option<Arc<dyn RemoteGames>>> {
        let Some(url) = &self.nats else { return Ok(None) };
        let remote_match = RemoteMatch::open(remote_match::Options {
            access: self.access.access(url),
            storage: Storage::default(),
            name: "a match".to_owned(),
            threads,
            audit_share: AUDIT,
            terms: Terms::default(),
            note: |text| eprintln!("{text}"),
        })?;
        Ok(Some(Arc::new(remote_match)))
    }
}

/// The share of workers' games that are replayed here for verification.
const AUDIT: f64 = 0.02;

fn openings(text: &str) -> Result<OpeningSource, String> {
    match text.strip_prefix("random:") {
        Some(plies) => match plies.parse() {
            Ok(plies @ 1..=100) => Ok(OpeningSource::Random { plies }),
            _ => Err(format!("random:{plies}: expected random:PLIES from 1 to 100")),
        },
        None => Ok(OpeningSource::File { path: PathBuf::from(text), plies: None }),
    }
}

fn draw_rule(text: &str) -> Result<DrawRule, String> {
    match whole_numbers(text)?[..] {
        [move_number, move_count, score] => Ok(DrawRule { move_number, move_count, score }),
        _ => Err("expected MOVE,COUNT,CENTIPAWNS such as 40,8,10".into()),
    }
}

fn resign_rule(text: &str) -> Result<ResignRule, String> {
    match whole_numbers(text)?[..] {
        [move_count, score] => Ok(ResignRule { move_count, score, sides: ResignSides::Loser }),
        _ => Err("expected COUNT,CENTIPAWNS such as 4,600".into()),
    }
}
