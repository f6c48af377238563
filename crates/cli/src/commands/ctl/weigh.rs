//! `longwire ctl weigh`

use super::elsewhere::{Elsewhere, InstanceArgs};
use crate::{Outcome, outcome};
use longwire_control::Kind;
use longwire_report::{Report, Row};

/// Change the weight of a flow that shares a router's processors while it runs
///
/// It applies from the flow's next turn on. longwire ctl stats shows the flows' shares.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire ctl weigh r1 voice 4
  longwire ctl weigh r1 backup 1 --instance two-hosts")]
pub struct Args {
    /// The router.
    router: String,

    /// The flow: a name among the router's flows in the scenario.
    flow: String,

    /// Its weight relative to other flows, a whole number, 1 to 65535.
    #[arg(allow_negative_numbers = true, value_parser = whole)]
    weight: i64,

    #[command(flatten)]
    of: InstanceArgs,
}

impl Args {
    /// Runs the command.
    ///
    /// # Errors
    /// If no instance is selected, or it refuses or does not answer.
    pub fn run(self, at: &Elsewhere) -> anyhow::Result<Outcome> {
        let Self { router, flow, weight, of } = self;
        let name = format!("{router}/{flow}");
        let change = ("weight".to_owned(), weight.to_string());
        let client = at.connect(of.instance.as_deref())?;
        client.set(Some(Kind::Flow), &name, &[change])?;
        let row = Row::new(name, "").extra("kind", "flow").extra("router", router).extra("weight", weight);
        outcome::print_if_json(&Report::new("ctl weigh").with_rows([row]), of.json)
    }
}

/// The instance checks the range.
fn whole(text: &str) -> Result<i64, &'static str> {
    text.parse().map_err(|_| "a weight is a whole number; give 1 to 65535")
}
