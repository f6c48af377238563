//! `longwire ctl route`

use super::elsewhere::{Elsewhere, InstanceArgs};
use crate::{Outcome, outcome};
use anyhow::ensure;
use longwire_control::Kind;
use longwire_report::{Report, Row};
use longwire_scenario::WrittenRoute;
use serde_json::Map;

/// List, add and remove a router's routes while it runs
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire ctl route list r1
  longwire ctl route add r1 10.1.0.0/16 via 10.9.0.2
  longwire ctl route add r1 10.2.0.0/16 dev r1-east
  longwire ctl route add r1 blackhole 10.3.0.0/16
  longwire ctl route add r1 10.4.0.0/16 nexthop via 10.9.0.2 nexthop via 10.9.1.2 weight 2
  longwire ctl route remove r1 10.1.0.0/16")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List a router's routes, including those to its own networks
    #[command(after_long_help = "\
Examples:
  longwire ctl route list r1
  longwire ctl route list r1 --json")]
    List {
        /// The router.
        router: String,

        #[command(flatten)]
        of: InstanceArgs,
    },
    /// Add a route, or change the next hop of the route to that network
    #[command(after_long_help = "\
Examples:
  longwire ctl route add r1 10.1.0.0/16 via 10.9.0.2
  longwire ctl route add r1 default via fe80::1 dev r1-east
  longwire ctl route add r1 10.4.0.0/16 nexthop via 10.9.0.2 nexthop via 10.9.1.2 weight 2")]
    Add {
        /// The router.
        router: String,

        /// The route, in the syntax of ip route.
        #[arg(required = true, value_name = "ROUTE")]
        route: Vec<String>,

        #[command(flatten)]
        of: InstanceArgs,
    },
    /// Remove the route to a network; a connected network gets its own route back
    #[command(after_long_help = "\
Examples:
  longwire ctl route remove r1 10.1.0.0/16
  longwire ctl route remove r1 default")]
    Remove {
        /// The router.
        router: String,

        /// The network; or default, which is 0.0.0.0/0 and ::/0.
        #[arg(value_name = "PREFIX")]
        network: String,

        #[command(flatten)]
        of: InstanceArgs,
    },
}

impl Args {
    /// Runs the command.
    ///
    /// # Errors
    /// If no instance is selected, or it refuses or does not answer.
    pub fn run(self, at: &Elsewhere) -> anyhow::Result<Outcome> {
        match self.action {
            Action::List { router, of } => list(&router, &of, at),
            Action::Add { router, route, of } => {
                let route = route.join(" ");
                if let Some(odd) = unused(&route) {
                    outcome::note(&format!("note: {odd}; leave it out"));
                }
                make("ctl route add", at, &of, (&router, addition(&route)?))
            }
            Action::Remove { router, network, of } => {
                let change = (format!("route.{network}"), String::new());
                make("ctl route remove", at, &of, (&router, change))
            }
        }
    }
}

/// A route in the syntax of `ip route` as a router's setting: `blackhole 10.3.0.0/16` is
/// `route.10.3.0.0/16=blackhole`.
fn pair(route: &str) -> (String, String) {
    let (first, rest) = route.trim().split_once(' ').unwrap_or((route.trim(), ""));
    let (to, way) = match first {
        "blackhole" | "unreachable" => (rest, first),
        to => (to, rest),
    };
    (format!("route.{}", to.trim()), way.trim().to_owned())
}

/// The change that adds a route. Without a next hop it would remove one.
fn addition(route: &str) -> anyhow::Result<(String, String)> {
    let change = pair(route);
    let has_next_hop = !matches!(&*change.1, "" | "none");
    ensure!(has_next_hop, "{route:?} has no next hop; write it as 10.1.0.0/16 via 10.9.0.2");
    Ok(change)
}

/// Makes a change.
fn make(
    command: &str,
    at: &Elsewhere,
    of: &InstanceArgs,
    (router, change): (&str, (String, String)),
) -> anyhow::Result<Outcome> {
    at.connect(of.instance.as_deref())?.set(Some(Kind::Router), router, std::slice::from_ref(&change))?;
    let settings = Map::from_iter([(change.0, change.1.into())]);
    let row = Row::new(router, "").extra("kind", "router").extra("settings", settings);
    outcome::print_if_json(&Report::new(command).with_rows([row]), of.json)
}

/// The reason why no packet uses a route, if none does.
fn unused(route: &str) -> Option<String> {
    WrittenRoute::read(route).ok()?.to.unused_route()
}

fn list(router: &str, of: &InstanceArgs, at: &Elsewhere) -> anyhow::Result<Outcome> {
    let page = at.connect(of.instance.as_deref())?.routes(router)?;
    if of.json.on {
        let row = Row::new(router, "routes").measured(page.routes.len() as u64);
        let row = row.extra("kind", "router").extra("routes", page.routes).extra("more", page.more);
        return outcome::print_report(&Report::new("ctl route list").with_rows([row]), true);
    }
    outcome::print(&page.routes.join("\n"))?;
    if page.more {
        outcome::note("there are more; these are the first");
    }
    Ok(Outcome::Well)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_by_which_nothing_goes_are_noted() {
        for (route, why) in [
            (
                "224.0.0.0/4 dev east",
                Some("the route to 224.0.0.0/4 is never used: nothing is forwarded to groups"),
            ),
            (
                "blackhole fe80::/10",
                Some("the route to fe80::/10 is never used: nothing is forwarded to addresses within a link"),
            ),
            ("10.1.0.0/16 via 10.9.0.2", None),
            ("default via 10.9.0.2", None),
        ] {
            assert_eq!(unused(route).as_deref(), why, "{route}");
        }
    }

    #[test]
    fn an_added_route_has_a_next_hop() {
        let change = |route: &str| addition(route).ok();
        let pair = |key: &str, value: &str| Some((key.to_owned(), value.to_owned()));
        assert_eq!(change("10.1.0.0/16 via 10.9.0.2"), pair("route.10.1.0.0/16", "via 10.9.0.2"));
        assert_eq!(change("blackhole 10.3.0.0/16"), pair("route.10.3.0.0/16", "blackhole"));
        for route in ["10.1.0.0/16", "10.1.0.0/16 ", "10.1.0.0/16 none", "default"] {
            assert_eq!(change(route), None, "{route}");
        }
    }
}
