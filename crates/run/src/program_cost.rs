//! What a program costs for a packet at worst, priced item by item, and the budgets that it fits.

use longwire_program::{Resource, VerifiedProgram, verify};
use longwire_report::shown::{columns, count};
use longwire_report::{Report, Row};
use longwire_router::{
    Admission, Budget, Forwarder, Forwarders, InstallError, Installation, LinkChoice, RouterPrices,
};
use longwire_scenario::{WrittenForwarder, nanoseconds_of};
use longwire_units::{Probability, Rate};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;

/// The only port of the router for which a program is priced.
const PORT: u16 = 0;

/// The cost of a program, and the budgets that it fits.
#[derive(Debug)]
pub struct ProgramCost {
    forwarder: Forwarder,
    prices: RouterPrices,
    verdicts: Vec<Trial>,
}

/// A budget, and a router with it that has only this program.
#[derive(Debug)]
struct Trial {
    name: String,
    budget: Budget,
    tried: Result<Arc<Forwarders>, InstallError>,
}

impl ProgramCost {
    /// The cost at these prices. The budgets are those of the paper's router, and of routers that guarantee
    /// each of the `rates`, less `set_aside` of the worker's time.
    ///
    /// # Errors
    /// If there is no such program, or the verifier refuses it.
    pub fn of(
        written: &WrittenForwarder,
        prices: RouterPrices,
        (rates, set_aside): (&[Rate], Probability),
    ) -> anyhow::Result<Self> {
        let program = written.any_program(&written.object(Path::new(""))?)?;
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
        let prepared = || {
            Forwarder::prepare(program.clone(), installation.clone(), &prices, 1)
                .map_err(|error| written.refused(&error))
        };
        let forwarder = prepared()?;
        let mut verdicts = Vec::new();
        for (name, budget) in budgets(rates, set_aside) {
            let admission = Admission { budget, prices: prices.clone() };
            let tried = Forwarders::none(admission, &[PORT], 1).with(prepared()?);
            verdicts.push(Trial { name, budget, tried: tried.map(|(_, table)| table) });
        }
        Ok(Self { forwarder, prices, verdicts })
    }

    fn verified(&self) -> &VerifiedProgram {
        self.forwarder.verified()
    }

    /// The instructions of the worst-case path.
    fn path(&self) -> Vec<String> {
        let verified = self.verified();
        let path = verified.worst_path(&self.prices.items).path;
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

    /// As text; with the instructions of the worst-case path if `with_path`.
    pub fn lines(&self, with_path: bool) -> Vec<String> {
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
        if with_path {
            lines.extend(self.path().iter().map(|place| format!("  {place}")));
        }
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

    /// As a report, in picoseconds; with the instructions of the worst-case path if `with_path`.
    pub fn report(&self, with_path: bool) -> Report {
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
        if with_path {
            report.set("path", self.path());
        }
        report.extend(items);
        report
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
