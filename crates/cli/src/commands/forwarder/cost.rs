//! `longwire forwarder cost`

use crate::shown::{columns, count};
use crate::{Outcome, outcome};
use longwire_program::{Resource, Verified};
use longwire_router::{Admission, Budget, Forwarder, Forwarders, Installation, RouterPrices};
use longwire_scenario::{WrittenForwarder, prices_of};
use longwire_units::Rate;
use std::path::Path;

/// Verify a program and say what it costs a packet at worst
///
/// The longest path, priced item by item; nothing need run. A program that the verifier refuses is refused with the instruction, the source
/// line where it is known, and the mend. Times are assumptions of a processor of 3 GHz whose memory answers in 90 ns, or measured: see --prices.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire forwarder cost syn-monitor
  longwire forwarder cost mine.o --function count
  longwire forwarder cost nat44 --line-rate 100mbit --path
  longwire forwarder cost nat44 --prices calibrated")]
pub struct Args {
    /// A program that comes with Longwire, or an object file.
    program: String,

    /// The function in the object, if it has several programs.
    #[arg(long)]
    function: Option<String>,

    /// A line rate that is to be held, besides 1 Gbit/s.
    #[arg(long, value_name = "RATE")]
    line_rate: Option<String>,

    /// Prices that "longwire calibrate" has measured: "calibrated", or a file that it wrote. Default: "assumed".
    #[arg(long, value_name = "PRICES")]
    prices: Option<String>,

    /// Print the instructions of the dearest path.
    #[arg(long)]
    path: bool,
}

impl Args {
    /// Prints it.
    ///
    /// # Errors
    /// If there is no such program, or the verifier refuses it.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let written = WrittenForwarder {
            program: self.program,
            function: self.function,
            ..WrittenForwarder::default()
        };
        let program = written.program(&written.object(Path::new(""))?)?;
        let prices = self.prices.as_deref().map_or(Ok(RouterPrices::default()), |name| prices_of(name, Path::new("")));
        let prices = prices.map_err(|error| anyhow::anyhow!("--prices: {error}"))?;
        let installation = Installation { name: program.name.clone(), ..Installation::default() };
        let prepare = || Forwarder::prepare(program.clone(), installation.clone(), &prices, 1);
        let forwarder = prepare()?;
        let verified = forwarder.verified();
        outcome::print(&format!(
            "{}: {} instructions in {} slots, {} bytes of state, {}",
            program.name,
            program.code.instructions().len(),
            program.code.slot_count(),
            verified.state_size(),
            if forwarder.is_compiled() { "compiled" } else { "interpreted" }
        ))?;
        outcome::print(&columns(&items(verified, &prices)).join("\n"))?;
        if self.path {
            for &instruction in &verified.dearest_path(&prices.items).path {
                outcome::print(&format!("  {}", program.place(instruction)))?;
            }
        }
        let gigabit = Rate(1_000_000_000);
        let mut budgets = vec![("vrp".to_owned(), Budget::VRP)];
        let mut add = |rate: Rate| budgets.push((format!("line-rate {rate}"), Budget::line_rate(rate.0)));
        add(gigabit);
        if let Some(rate) = self.line_rate {
            add(rate.parse::<Rate>().map_err(|error| anyhow::anyhow!("--line-rate: {error}"))?);
        }
        for (name, budget) in budgets {
            let admission = Admission { budget, prices: prices.clone() };
            let verdict = match Forwarders::none(admission, &[], 1).with(prepare()?) {
                Ok((_, table)) => {
                    let amounts = Resource::ALL.iter().filter_map(|&resource| {
                        let limit = budget.limit(resource)?;
                        Some(format!("{} of {limit} {}", table.need().amount(resource), resource.name()))
                    });
                    format!("fits: {}", amounts.collect::<Vec<_>>().join(", "))
                }
                Err(refused) => format!("refused: {refused}"),
            };
            outcome::print(&format!("{name}: {verdict}"))?;
        }
        Ok(Outcome::Well)
    }
}

/// What happens on the dearest path, and what each item costs there, in nanoseconds.
fn items(verified: &Verified, prices: &RouterPrices) -> Vec<Vec<String>> {
    let dearest = verified.dearest_path(&prices.items);
    let time = |picoseconds: u64| format!("{}.{:01} ns", count(picoseconds / 1000), picoseconds % 1000 / 100);
    let mut lines = vec![["item", "times", "each", "all", ""].map(str::to_owned).to_vec()];
    for (item, times) in dearest.counts.iter() {
        let price = prices.items.price(item);
        if price > 0 {
            lines.push(vec![
                item.name().to_owned(),
                count(times.into()),
                time(price),
                time(price.saturating_mul(times.into())),
                item.help().to_owned(),
            ]);
        }
    }
    let sum = ["longest path".to_owned(), String::new(), String::new(), time(dearest.price), String::new()];
    lines.push(sum.to_vec());
    lines
}
