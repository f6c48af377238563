//! `longwire forwarder cost`

use super::program_args::ProgramArgs;
use crate::{Json, Outcome, outcome};
use longwire_prices::prices_of;
use longwire_program::{Resource, VerifiedProgram, verify};
use longwire_report::shown::{columns, count};
use longwire_report::{Report, Row};
use longwire_router::{
    Admission, Budget, Forwarder, Forwarders, InstallError, Installation, LinkChoice, PrepareError,
    RouterPrices,
};
use longwire_scenario::nanoseconds_of;
use longwire_units::{Probability, Rate};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;

/// Verify a program and print its worst-case cost per packet
///
/// The longest path is priced item by item; no instance need run. A refused program is reported with the
/// instruction, the source line if known, and the fix. Prices are assumptions about a processor of 3 GHz with
/// a memory latency of 90 ns, or measured: see --prices.
#[derive(Debug, clap::Args)]
#[command(mut_arg("json", |json| json.help("Print JSON; prices are in picoseconds")))]
#[command(after_long_help = "\
Examples:
  longwire forwarder cost syn-monitor
  longwire forwarder cost mine.o --function count
  longwire forwarder cost mine.o --function redirect --exit stamp
  longwire forwarder cost nat44 --line-rate 100mbit --path
  longwire forwarder cost tcp-splicer --set-aside '10 %'
  longwire forwarder cost nat44 --prices calibrated
  longwire forwarder cost nat44 --json")]
pub struct Args {
    /// A built-in program, or an object file.
    program: String,

    #[command(flatten)]
    chosen: ProgramArgs,

    /// A line rate to be guaranteed, besides 1 Gbit/s.
    #[arg(long, value_name = "RATE")]
    line_rate: Option<String>,

    /// The worker's share for packets to and from other levels, the sum of "worker" in a router's slow-path
    /// and control: "10 %".
    #[arg(long, value_name = "PART", default_value = "0 %")]
    set_aside: Probability,

    /// Prices from "longwire calibrate": "calibrated", or a file that it wrote. Default: "assumed".
    #[arg(long, value_name = "PRICES")]
    prices: Option<String>,

    /// Print the instructions of the worst-case path.
    #[arg(long)]
    path: bool,

    #[command(flatten)]
    json: Json,
}

impl Args {
    /// Prints the cost.
    ///
    /// # Errors
    /// If there is no such program, or the verifier refuses it.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let written = self.chosen.of(self.program);
        let program = written.any_program(&written.object(Path::new(""))?)?;
        let prices = self.prices.as_deref().map_or(Ok(RouterPrices::default()), |name| {
            prices_of(name, Path::new("")).map(|prices| prices.router)
        });
        let prices = prices.map_err(|error| anyhow::anyhow!("--prices: {error}"))?;
        let mut rates = vec![Rate(1_000_000_000)];
        if let Some(rate) = self.line_rate {
            rates.push(held(&rate).map_err(|why| anyhow::anyhow!("--line-rate: {why}"))?);
        }
        // The links available to a program do not affect its cost.
        let all = [&program].into_iter().chain(program.exits.iter().map(|exit| &exit.program));
        let links = all.map(|one| verify(one.clone()).map_or(0, |verified| verified.links())).max();
        let links = links.unwrap_or(0) as usize;
        let link = LinkChoice { name: "link".into(), number: 0, port: PORT, from: None };
        let installation = Installation {
            name: program.name.clone(),
            links: vec![link; links].into(),
            ..Installation::default()
        };
        let prepare = || -> Result<Forwarder, PrepareError> {
            Forwarder::prepare(program.clone(), installation.clone(), &prices, 1)
        };
        let prepared = || prepare().map_err(|error| written.refused(&error));
        let forwarder = prepared()?;
        let mut verdicts = Vec::new();
        for (name, budget) in budgets(&rates, self.set_aside) {
            let admission = Admission { budget, prices: prices.clone() };
            let tried = Forwarders::none(admission, &[PORT], 1).with(prepared()?);
            verdicts.push(Trial { name, budget, tried: tried.map(|(_, table)| table) });
        }
        let cost = Cost { forwarder, prices, verdicts, path: self.path };
        if self.json.on {
            return outcome::print_report(&cost.report(), true);
        }
        cost.lines().iter().try_for_each(|line| outcome::print(line))?;
        Ok(Outcome::Well)
    }
}

/// The only port of the router for which a program is priced.
const PORT: u16 = 0;

/// The cost of a program, and the budgets that it fits.
struct Cost {
    forwarder: Forwarder,
    prices: RouterPrices,
    verdicts: Vec<Trial>,
    /// Whether the worst-case path is requested.
    path: bool,
}

/// A budget, and a router with it that has only this program.
struct Trial {
    name: String,
    budget: Budget,
    tried: Result<Arc<Forwarders>, InstallError>,
}

impl Cost {
    fn verified(&self) -> &VerifiedProgram {
        self.forwarder.verified()
    }

    /// The instructions of the worst-case path, if requested.
    fn path(&self) -> Vec<String> {
        let verified = self.verified();
        let path = if self.path { verified.worst_path(&self.prices.items).path } else { Vec::new() };
        path.iter().map(|&instruction| verified.program().place(instruction).to_string()).collect()
    }

    /// Costs of programs that entries of its maps may name, and the worst-case total.
    fn exits(&self) -> Vec<String> {
        let each = self.forwarder.exits().map(|(kind, verified)| {
            let price = verified.worst_path(&self.prices.items).price;
            format!("{}, by an entry of a {}: {}", verified.program().name, kind.map(), nanoseconds(price))
        });
        let mut lines: Vec<String> = each.collect();
        if !lines.is_empty() {
            lines.push(format!(
                "with these at worst: {}",
                nanoseconds(self.forwarder.demand().amount(Resource::Time))
            ));
        }
        lines
    }

    fn lines(&self) -> Vec<String> {
        let program = self.verified().program();
        let mut lines = vec![format!(
            "{}: {} instructions in {} slots, {} bytes of state, {}",
            program.name,
            program.code.instructions().len(),
            program.code.slot_count(),
            self.verified().state_size(),
            if self.forwarder.is_compiled() { "compiled" } else { "interpreted" }
        )];
        lines.extend(columns(&items(self.verified(), &self.prices)));
        lines.extend(self.exits());
        lines.extend(self.path().iter().map(|place| format!("  {place}")));
        for Trial { name, budget, tried } in &self.verdicts {
            lines.push(match tried {
                Ok(table) => {
                    let amounts = Resource::ALL.iter().filter_map(|&resource| {
                        let limit = budget.limit(resource)?;
                        Some(format!("{} of {limit} {}", table.need().amount(resource), resource.name()))
                    });
                    format!("{name}: fits: {}", amounts.collect::<Vec<_>>().join(", "))
                }
                Err(refused) => format!("{name}: refused: {refused}"),
            });
        }
        lines
    }

    fn report(&self) -> Report {
        let (verified, prices) = (self.verified(), &self.prices.items);
        let (program, worst) = (verified.program(), verified.worst_path(prices));
        let items = worst.counts.iter().filter(|&(item, _)| prices.price(item) > 0);
        let items = items.map(|(item, times)| {
            let each = prices.price(item);
            let all = each.saturating_mul(times.into());
            Row::new(item.name(), "ps").measured(all).extra("times", times).extra("each_ps", each)
        });
        let budgets = self.verdicts.iter().map(|Trial { name, budget, tried }| {
            let amounts = |amount: &dyn Fn(Resource) -> u64| -> Map<String, Value> {
                let limited = Resource::ALL.iter().filter(|&&resource| budget.limit(resource).is_some());
                limited.map(|&resource| (resource.name().to_owned(), amount(resource).into())).collect()
            };
            json!({
                "name": name,
                "fits": tried.is_ok(),
                "need": tried.as_ref().ok().map(|table| amounts(&|resource| table.need().amount(resource))),
                "budget": amounts(&|resource| budget.limit(resource).unwrap_or_default()),
                "refused": tried.as_ref().err().map(ToString::to_string),
            })
        });
        let exits = self.forwarder.exits().map(|(kind, exit)| {
            json!({
                "program": exit.program().name,
                "map": kind.map(),
                "longest_path_ps": exit.worst_path(prices).price,
            })
        });
        let mut report = Report::new("forwarder cost")
            .with("program", &*program.name)
            .with("instructions", program.code.instructions().len())
            .with("slots", program.code.slot_count())
            .with("state", verified.state_size())
            .with("compiled", self.forwarder.is_compiled())
            .with("longest_path_ps", worst.price)
            .with("exits", exits.collect::<Vec<_>>())
            .with("with_exits_ps", self.forwarder.demand().amount(Resource::Time))
            .with("budgets", budgets.collect::<Vec<_>>());
        if self.path {
            report.set("path", self.path());
        }
        report.extend(items);
        report
    }
}

/// Parses a rate that can be guaranteed.
fn held(text: &str) -> Result<Rate, String> {
    match text.parse() {
        Ok(Rate(0) | Rate::UNLIMITED) => {
            Err(format!("\"{text}\" promises nothing: write the rate that is to be held"))
        }
        Ok(rate) => Ok(rate),
        Err(error) => Err(error.to_string()),
    }
}

/// The budgets of the paper's router and of routers that guarantee these rates, less what is set aside.
fn budgets(rates: &[Rate], set_aside: Probability) -> Vec<(String, Budget)> {
    let of_rate = |rate: &Rate| (format!("line-rate {rate}"), Budget::line_rate(rate.0));
    let all = [("vrp".to_owned(), Budget::VRP)].into_iter().chain(rates.iter().map(of_rate));
    let nanoseconds = nanoseconds_of(set_aside);
    let less = |(name, budget): (String, Budget)| match nanoseconds {
        0 => (name, budget),
        _ => (format!("{name}, {set_aside} set aside"), budget.setting_aside(nanoseconds)),
    };
    all.map(less).collect()
}

fn nanoseconds(picoseconds: u64) -> String {
    format!("{}.{:01} ns", count(picoseconds / 1000), picoseconds % 1000 / 100)
}

/// Items on the worst-case path, and the cost of each in nanoseconds.
fn items(verified: &VerifiedProgram, prices: &RouterPrices) -> Vec<Vec<String>> {
    let worst = verified.worst_path(&prices.items);
    let time = nanoseconds;
    let mut lines = vec![["item", "times", "each", "all", ""].map(str::to_owned).to_vec()];
    for (item, times) in worst.counts.iter() {
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
    let sum = ["longest path".to_owned(), String::new(), String::new(), time(worst.price), String::new()];
    lines.push(sum.to_vec());
    lines
}
