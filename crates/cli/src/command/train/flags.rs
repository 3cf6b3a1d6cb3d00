//! Flags for settings that people know by these names. Each is the same as its `--set`.

use crate::output::wrong_usage;

#[derive(clap::Args, Default)]
#[command(next_help_heading = "Settings by their usual names")]
pub struct SettingFlags {
    /// Residual blocks (network.blocks)
    #[arg(long, value_name = "N")]
    blocks: Option<u64>,
    /// Filters of each convolution (network.filters, or network.channels of value)
    #[arg(long, visible_alias = "channels", value_name = "N")]
    filters: Option<u64>,
    /// Simulations per move of self-play, from the first game to the last (selfplay.simulations)
    #[arg(long, visible_alias = "simulations", value_name = "N")]
    sims: Option<u64>,
    /// Positions per batch (learning.batch, or batch)
    #[arg(long, value_name = "N")]
    batch_size: Option<u64>,
    /// Learning starts when the replay buffer has this many positions (learning.min_buffer)
    #[arg(long, value_name = "N")]
    min_buffer: Option<u64>,
    /// Games that each thread plays at once (selfplay.games_at_once)
    #[arg(long, value_name = "N")]
    actors: Option<u64>,
}

/// A flag, its value, and the settings that it may mean: the first of them that a learner has.
type Flag = (&'static str, Option<u64>, &'static [&'static [&'static str]]);

impl SettingFlags {
    /// The flags as `--set` takes them. Exits like clap for a wrong flag if the learner has no such
    /// setting.
    pub fn settings(&self, learner: &str, known: &toml::Table) -> Vec<String> {
        let flags: [Flag; 6] = [
            ("--blocks", self.blocks, &[&["network.blocks"]]),
            ("--filters", self.filters, &[&["network.filters"], &["network.channels"]]),
            ("--sims", self.sims, &[&["selfplay.simulations.from", "selfplay.simulations.to"]]),
            ("--batch-size", self.batch_size, &[&["learning.batch"], &["batch"]]),
            ("--min-buffer", self.min_buffer, &[&["learning.min_buffer"]]),
            ("--actors", self.actors, &[&["selfplay.games_at_once"]]),
        ];
        let mut settings = Vec::new();
        for (flag, value, names) in flags {
            let Some(value) = value else { continue };
            let is_known = |names: &&&[&str]| names.iter().all(|name| has(known, name));
            let Some(names) = names.iter().find(is_known) else {
                wrong_usage(&format!(
                    "{flag}: {learner} has no such setting; `selfmate train {learner} --settings` \
                     lists those it has"
                ));
            };
            settings.extend(names.iter().map(|name| format!("{name}={value}")));
        }
        settings
    }

    pub fn is_empty(&self) -> bool {
        let SettingFlags { blocks, filters, sims, batch_size, min_buffer, actors } = self;
        [blocks, filters, sims, batch_size, min_buffer, actors].into_iter().all(Option::is_none)
    }
}

/// True if the table has a setting with this path.
fn has(table: &toml::Table, path: &str) -> bool {
    match path.split_once('.') {
        None => table.contains_key(path),
        Some((name, rest)) => {
            table.get(name).and_then(toml::Value::as_table).is_some_and(|inner| has(inner, rest))
        }
    }
}

/// A tip for a flag that `train` does not have: the settings whose names contain its words.
pub fn tip(learner: &str, flag: &str, settings: &[String]) -> String {
    let name = flag.trim_start_matches('-').replace('-', "_");
    let aliases =
        [("lr", "rate"), ("learning_rate", "rate"), ("epochs", "reuse"), ("gamma", "discount")];
    let wanted = aliases.iter().find(|(alias, _)| *alias == name).map_or(&*name, |(_, word)| word);
    let found: Vec<&str> =
        settings.iter().map(String::as_str).filter(|path| path.contains(wanted)).take(4).collect();
    let list = format!("`selfmate train {learner} --settings` lists all settings");
    match found[..] {
        [] => format!("settings are changed with --set KEY=VALUE; {list}"),
        _ => format!("did you mean --set {}=…? {list}", found.join("=… or --set ")),
    }
}
