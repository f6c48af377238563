//! `longwire blocks`

use crate::{Json, Outcome, outcome};
use longwire_block::{Fallback, Spec};
use longwire_report::{Report, Row};
use longwire_scenario::name_hint;
use serde_json::json;
use std::fmt::Write;

/// List the blocks of a link, with every parameter
#[derive(Debug, clap::Args)]
#[command(
    visible_alias = "reference",
    after_long_help = "\
Examples:
  longwire blocks
  longwire blocks queue
  longwire blocks --json"
)]
pub struct Args {
    /// Only the blocks of this key: rate, delay, queue …
    key: Option<String>,

    #[command(flatten)]
    json: Json,

    /// Print the book's reference page of all settings, including those of sections, sources and media.
    #[arg(long, conflicts_with_all = ["json", "key"])]
    markdown: bool,
}

impl Args {
    /// Prints the list.
    ///
    /// # Errors
    /// If there is no such key.
    pub fn run(self) -> anyhow::Result<Outcome> {
        if self.markdown {
            return outcome::print(longwire_scenario::reference().trim_end());
        }
        let mut specs = longwire_link::registry();
        if let Some(key) = &self.key {
            let mut known: Vec<_> = specs.iter().map(|spec| spec.key).collect();
            known.dedup();
            if !known.contains(&key.as_str()) {
                anyhow::bail!("there is no key \"{key}\"; {}", name_hint(key, &known));
            }
            specs.retain(|spec| spec.key == key);
        }
        if self.json.on {
            let report = Report::new("blocks").with_rows(specs.iter().map(|spec| row(spec)));
            return outcome::print_report(&report, true);
        }
        outcome::print(specs.iter().map(|spec| as_text(spec)).collect::<Vec<_>>().join("\n").trim_end())
    }
}

fn as_text(spec: &Spec) -> String {
    let live = if spec.params.iter().all(|param| param.live) { "; changes while a run goes on" } else { "" };
    let mut text = format!("{} ({}): {}\n  [{}{live}]\n", spec.key, spec.kind, spec.summary, spec.source);
    for param in spec.params {
        let default = match param.default {
            Fallback::Required => "must be given".into(),
            Fallback::Value(value) => format!("default {value}"),
            Fallback::Computed(words) => format!("default: {words}"),
        };
        let (name, takes, help) = (param.name, param.takes(), param.help);
        // Writing to a String can't fail.
        let _ = writeln!(text, "  {name:<10} {takes} ({default})\n  {:<10} {help}", "");
    }
    text
}

/// The row of a block, named as in `ctl set`.
fn row(spec: &Spec) -> Row {
    let params = spec.params.iter().map(|param| {
        let default_is = if let Fallback::Computed(words) = param.default { Some(words) } else { None };
        json!({
            "name": param.name,
            "takes": param.takes(),
            "default": param.default.value(),
            "default-is": default_is,
            "help": param.help,
            "live": param.live,
        })
    });
    Row::new(format!("{}={}", spec.key, spec.kind), "")
        .extra("key", spec.key)
        .extra("kind", spec.kind)
        .extra("summary", spec.summary)
        .extra("source", spec.source)
        .extra("params", params.collect::<Vec<_>>())
}
