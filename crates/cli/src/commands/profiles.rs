//! `longwire profiles`

use crate::{Outcome, outcome};
use anyhow::Context;
use clap::Subcommand;
use longwire_scenario::library::{About, Figures, SHIPPED, Shipped};
use longwire_scenario::suggestion;
use serde_json::{Value, json};
use std::fmt::Write;

/// List the profiles that links can have: dial-up to data centre
///
/// A profile says what a link is like, down (to the user) and up (from the user): rate, delay, loss, queue. Use one as
/// profile = "lte" in a scenario's link, or as longwire exec --profile lte; settings of your own go before its.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire profiles
  longwire profiles --json
  longwire profiles show lte
  longwire profiles show lte > mine.toml")]
pub struct Args {
    #[command(subcommand)]
    what: Option<What>,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Print a profile's file, with where its figures come from
    Show {
        /// The profile.
        name: String,
    },
}

impl Args {
    /// Prints the list, or a profile.
    ///
    /// # Errors
    /// If there is no such profile.
    pub fn run(self) -> anyhow::Result<Outcome> {
        if let Some(What::Show { name }) = self.what {
            let known = || SHIPPED.iter().map(|shipped| shipped.name);
            let fix = || match suggestion(&name, known()) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("there are {}", known().collect::<Vec<_>>().join(", ")),
            };
            let shipped = Shipped::named(&name)
                .with_context(|| format!("there is no profile \"{name}\"; {}", fix()))?;
            outcome::print(shipped.text.trim_end())?;
            return Ok(Outcome::Well);
        }
        let all: Vec<(&str, About)> = SHIPPED
            .iter()
            .map(|shipped| Ok((shipped.name, shipped.about()?)))
            .collect::<anyhow::Result<_>>()?;
        if self.json {
            let list: Vec<_> = all.iter().map(|(name, about)| as_json(name, about)).collect();
            outcome::print(&serde_json::to_string_pretty(&list)?)?;
        } else {
            let list: Vec<_> = all.iter().map(|(name, about)| as_text(name, about)).collect();
            outcome::print(list.join("\n").trim_end())?;
        }
        Ok(Outcome::Well)
    }
}

fn as_text(name: &str, about: &About) -> String {
    let mut text = format!("{name}: {}\n", about.summary);
    for (way, figures) in [("down", &about.forward), ("up", &about.backward)] {
        let Figures { rate, delay, loss, queue } = figures;
        // Writing to a String can't fail.
        let _ = writeln!(text, "  {way:<5} {rate}, delay {delay}, loss {loss}, queue {queue}");
    }
    let _ = writeln!(text, "  [{}]", about.source);
    text
}

fn as_json(name: &str, about: &About) -> Value {
    let way = |figures: &Figures| {
        let Figures { rate, delay, loss, queue } = figures;
        json!({ "rate": rate, "delay": delay, "loss": loss, "queue": queue })
    };
    json!({
        "name": name,
        "summary": about.summary,
        "source": about.source,
        "forward": way(&about.forward),
        "backward": way(&about.backward),
    })
}
