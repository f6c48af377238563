//! `longwire profiles`

use crate::{Json, Outcome, outcome};
use anyhow::Context;
use clap::Subcommand;
use longwire_report::{Report, Row};
use longwire_scenario::library::{Description, Figures, SHIPPED, ShippedProfile};
use longwire_scenario::name_hint;
use serde_json::json;
use std::fmt::Write;

/// List the profiles of links: dial-up to data centre
///
/// A profile describes a link, down (to the user) and up (from the user): rate, delay, loss, queue. Use one
/// as profile = "lte" in a scenario's link, or as longwire exec --profile lte; your own settings override it.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire profiles
  longwire profiles --json
  longwire profiles show lte
  longwire profiles show lte > mine.toml")]
pub struct Args {
    #[command(subcommand)]
    what: Option<Action>,

    #[command(flatten)]
    json: Json,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print a profile's file, with the sources of its figures
    Show {
        /// The profile.
        name: String,

        #[command(flatten)]
        json: Json,
    },
}

impl Args {
    /// Prints the list, or a profile.
    ///
    /// # Errors
    /// If there is no such profile.
    pub fn run(self) -> anyhow::Result<Outcome> {
        if let Some(Action::Show { name, json }) = self.what {
            let shipped = ShippedProfile::named(&name).with_context(|| {
                let known: Vec<&str> = SHIPPED.iter().map(|shipped| shipped.name).collect();
                format!("there is no profile \"{name}\"; {}", name_hint(&name, &known))
            })?;
            if json.on || self.json.on {
                let row = row(shipped.name, &shipped.description()?).extra("text", shipped.text);
                return outcome::print_report(&Report::new("profiles show").with_rows([row]), true);
            }
            return outcome::print(shipped.text.trim_end());
        }
        let all: Vec<(&str, Description)> = SHIPPED
            .iter()
            .map(|shipped| Ok((shipped.name, shipped.description()?)))
            .collect::<anyhow::Result<_>>()?;
        if self.json.on {
            let rows = all.iter().map(|(name, about)| row(name, about));
            return outcome::print_report(&Report::new("profiles").with_rows(rows), true);
        }
        let list: Vec<_> = all.iter().map(|(name, about)| as_text(name, about)).collect();
        outcome::print(list.join("\n").trim_end())
    }
}

fn as_text(name: &str, about: &Description) -> String {
    let mut text = format!("{name}: {}\n", about.summary);
    for (way, figures) in [("down", &about.forward), ("up", &about.backward)] {
        let Figures { rate, delay, loss, queue } = figures;
        // Writing to a String can't fail.
        let _ = writeln!(text, "  {way:<5} {rate}, delay {delay}, loss {loss}, queue {queue}");
    }
    let _ = writeln!(text, "  [{}]", about.source);
    text
}

fn row(name: &str, about: &Description) -> Row {
    let way = |figures: &Figures| {
        let Figures { rate, delay, loss, queue } = figures;
        json!({ "rate": rate, "delay": delay, "loss": loss, "queue": queue })
    };
    Row::new(name, "")
        .extra("kind", "profile")
        .extra("summary", &*about.summary)
        .extra("source", &*about.source)
        .extra("forward", way(&about.forward))
        .extra("backward", way(&about.backward))
}
