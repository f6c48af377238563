//! A run's routers and their programs as settings by name: what NESP reads and changes.
//!
//! A router has a setting `route.NETWORK` for each of its routes, whose value is what `ip route` writes behind the network, and a
//! setting `weight.FLOW` for each flow with a name that shares its processors. A program is called `ROUTER/NAME`.

use crate::live::Pair;
use crate::live_forwarders::wrong;
use crate::live_routers::{LiveRouters, gone};
use longwire_assemble::change_router;
use longwire_control::{ForwarderAsk, SetError};
use longwire_engine::Remote;
use longwire_router::Router;
use longwire_scenario::{RouteChange, RoutedTo, WrittenForwarder, WrittenRoute};
use longwire_sched::Weight;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What settings of routers begin with.
const ROUTE: &str = "route.";
const WEIGHT: &str = "weight.";
/// The setting that installs a program or removes it, and that of its state.
const PROGRAM: &str = "program";
const DATA: &str = "data";
/// What takes something away.
const NONE: &str = "none";
/// The longest state that is shown: two digits a byte fit the longest value.
const LONGEST_DATA: usize = longwire_nesp::MOST_TEXT / 2;
/// What a new program may be told besides its state.
const PLAIN: [&str; 5] = [PROGRAM, "state", "port", "via", "queue"];
const KEY: [&str; 5] = ["source", "source-port", "destination", "destination-port", "protocol"];

impl LiveRouters {
    /// A router's settings; none if there is no such router.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn settings(
        &self,
        remote: &Remote,
        name: &str,
    ) -> Result<Option<BTreeMap<String, String>>, SetError> {
        let Ok(place) = self.place(name) else { return Ok(None) };
        let router = &self.plan().routers[place];
        let mut settings = BTreeMap::new();
        for route in self.known_routes(remote, place)? {
            let (to, written) = (route.to.to_string(), router.written(&route));
            // Those to its own addresses can't be changed.
            let way = match written.split_once(' ') {
                Some((first, way)) if first == to => way,
                Some(("blackhole", _)) => "blackhole",
                _ => continue,
            };
            settings.insert(format!("{ROUTE}{to}"), way.to_owned());
        }
        let processors = remote.at_node(self.node(place), |router: &mut Router, _| router.processors());
        let flows = processors.map_err(|error| gone(&error))?.map(|all| all.flows).unwrap_or_default();
        let named = router.sharing.iter().flat_map(|sharing| &sharing.flows);
        for named in named {
            if let Some(flow) = flows.iter().find(|flow| *flow.flow == *named.name) {
                settings.insert(format!("{WEIGHT}{}", named.name), flow.weight.to_string());
            }
        }
        Ok(Some(settings))
    }

    /// Changes a router's routes and the weights of its flows: all at one instant, or none.
    ///
    /// # Errors
    /// If there is no such router, or something can't be so.
    pub fn set_router(&self, remote: &Remote, name: &str, pairs: &[Pair]) -> Result<(), SetError> {
        let place = self.place(name)?;
        let (mut routes, mut weights) = (Vec::new(), Vec::new());
        for (key, value) in pairs {
            let refused = |reason: String| wrong(key, reason);
            if let Some(to) = key.strip_prefix(ROUTE) {
                self.check_has_routes(place)?;
                routes.push(self.route_change(place, to, value).map_err(refused)?);
            } else if let Some(flow) = key.strip_prefix(WEIGHT) {
                let number = value.parse().ok().and_then(|weight| Weight::new(weight).ok());
                let wanted = || format!("\"{value}\" is no weight; give a whole number, 1 to 65535");
                weights.push((Box::from(flow), number.ok_or_else(|| refused(wanted()))?));
            } else {
                let known = "a router has route.NETWORK, such as route.10.1.0.0/16, and weight.FLOW";
                return Err(refused(known.into()));
            }
        }
        let change = move |router: &mut Router, _| change_router(router, &routes, &weights);
        let done = remote.at_node(self.node(place), change);
        done.map_err(|error| gone(&error))?.map_err(|reason| wrong("router", reason))
    }

    fn route_change(&self, place: usize, to: &str, value: &str) -> Result<RouteChange, String> {
        let router = &self.plan().routers[place];
        if matches!(value.trim(), "" | NONE) {
            return router.removal(to.parse::<RoutedTo>()?);
        }
        let text = match value.trim() {
            word @ ("blackhole" | "unreachable") => format!("{word} {to}"),
            way => format!("{to} {way}"),
        };
        WrittenRoute::read(&text).and_then(|route| router.route(&route)).map(RouteChange::Add)
    }

    /// The names of all programs, `ROUTER/NAME`: first those of the first router. A name that several have is there once.
    pub fn program_names(&self, remote: &Remote) -> Vec<String> {
        let mut names = Vec::new();
        for (router, table) in self.plan().routers.iter().zip(self.programs(remote)) {
            for program in table.iter().flat_map(|table| table.all()) {
                let name = format!("{}/{}", router.name, program.installation().name);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        names
    }

    /// What a program is and holds; none if there is no such program.
    ///
    /// # Errors
    /// If several have this name, or the router does not answer.
    pub fn program_settings(
        &self,
        remote: &Remote,
        name: &str,
    ) -> Result<Option<BTreeMap<String, String>>, SetError> {
        let Some((router, program)) = self.program(remote, name)? else { return Ok(None) };
        let fid = number_of(&program)?;
        let mut settings = BTreeMap::new();
        for key in ["fid", "key", "where", "state", "port", "via", "queue", "packets", "dropped"] {
            let text = match &program[key] {
                Value::Null => continue,
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            settings.insert(key.to_owned(), text);
        }
        let held = self.forwarders(remote, router, &ForwarderAsk::Get { fid, kind: None })?;
        // A part of it would be taken for all.
        if let Some(data) = held["data"].as_str().filter(|data| data.len() <= 2 * LONGEST_DATA) {
            settings.insert(DATA.into(), data.to_owned());
        }
        Ok(Some(settings))
    }

    /// Installs a program that comes with Longwire under a name that no other has, removes the one with that name, or writes its state.
    ///
    /// # Errors
    /// If there is no such router or program, there is one where one is to be installed, or it can't be; nothing has changed then.
    pub fn set_program(&self, remote: &Remote, name: &str, pairs: &[Pair]) -> Result<(), SetError> {
        let program = pairs.iter().rev().find(|(key, _)| key == PROGRAM).map(|(_, value)| value.trim());
        let there = self.program(remote, name)?;
        let none = |there: &str| wrong(PROGRAM, format!("there is {there} program \"{name}\""));
        let (router, ask) = match (program, there) {
            (Some("" | NONE), Some((router, found))) if pairs.len() == 1 => {
                (router, ForwarderAsk::Remove { fid: number_of(&found)? })
            }
            (Some("" | NONE), Some(_)) => {
                return Err(wrong(PROGRAM, "what is removed has no settings".into()));
            }
            (Some("" | NONE) | None, None) => return Err(none("no")),
            (Some(_), Some(_)) => return Err(none("already a")),
            (Some(_), None) => {
                let (router, called) = self.named(name)?;
                let forwarder = written(called, pairs)?;
                (router, ForwarderAsk::Install { forwarder, object: None, lease: None })
            }
            (None, Some((router, found))) => match pairs {
                [(key, data)] if key == DATA => {
                    (router, ForwarderAsk::Set { fid: number_of(&found)?, data: data.clone(), kind: None })
                }
                _ => {
                    let reason = "of a program that is there only data can be set; all else is chosen when it is installed";
                    return Err(wrong(PROGRAM, reason.into()));
                }
            },
        };
        self.forwarders(remote, router, &ask).map(drop)
    }

    /// The router's name and the program's.
    fn named<'n>(&self, name: &'n str) -> Result<(&'n str, &'n str), SetError> {
        let both = name.split_once('/').filter(|(_, program)| !program.is_empty());
        let (router, program) =
            both.ok_or_else(|| wrong(PROGRAM, format!("\"{name}\" names no program: write ROUTER/NAME")))?;
        self.place(router)?;
        Ok((router, program))
    }

    /// A program by its name, as it is listed, and its router; none if there is no such program.
    fn program<'n>(&self, remote: &Remote, name: &'n str) -> Result<Option<(&'n str, Value)>, SetError> {
        let (router, called) = self.named(name)?;
        let mut list = self.forwarders(remote, router, &ForwarderAsk::List {})?;
        let all = list["forwarders"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let mut same = all.into_iter().filter(|one| one["name"] == called);
        let first = same.next();
        if same.next().is_some() {
            let reason =
                format!("several programs are called \"{name}\": longwire forwarder knows them by number");
            return Err(wrong(PROGRAM, reason));
        }
        Ok(first.map(|program| (router, program)))
    }
}

fn number_of(program: &Value) -> Result<u32, SetError> {
    let fid = program["fid"].as_u64().and_then(|fid| u32::try_from(fid).ok());
    fid.ok_or_else(|| SetError::Unavailable("the router's list of programs can't be read".into()))
}

/// A program that is to be installed, as scenarios write it.
fn written(called: &str, pairs: &[Pair]) -> Result<Value, SetError> {
    let mut all = Map::from_iter([("name".to_owned(), Value::from(called))]);
    for (key, value) in pairs {
        let (within, field) = key.split_once('.').unwrap_or(("", key));
        let known = match within {
            "" => PLAIN.contains(&field) || field == DATA,
            "key" => KEY.contains(&field),
            other => matches!(other, "constants" | "maps"),
        };
        if !known {
            let fields = KEY.map(|field| format!("key.{field}")).join(", ");
            let reason = format!(
                "a program has no such setting; it has {}, {DATA}, {fields}, constants.NAME and maps.NAME",
                PLAIN.join(", ")
            );
            return Err(wrong(key, reason));
        }
        let place = match within {
            "" => &mut all,
            _ => match all.entry(within).or_insert_with(|| Value::Object(Map::new())) {
                Value::Object(fields) => fields,
                _ => continue,
            },
        };
        place.insert(field.to_owned(), value.trim().into());
    }
    let forwarder = Value::Object(all);
    // Says what is wrong before anything is asked of the router.
    serde_json::from_value::<WrittenForwarder>(forwarder.clone())
        .map_err(|error| wrong(PROGRAM, error.to_string()))?;
    Ok(forwarder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn settings_of_a_new_program_become_what_a_scenario_says() {
        let of = |pairs: &[(&str, &str)]| {
            let pairs: Vec<Pair> = pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
            written("mark", &pairs).map_err(|error| error.to_string())
        };
        let pairs = [
            ("program", "dscp-marker"),
            ("key.destination", "10.0.2.9"),
            ("key.protocol", "udp"),
            ("data", "2e00"),
            ("constants.most", "5"),
        ];
        let wanted = json!({
            "name": "mark", "program": "dscp-marker", "key": { "destination": "10.0.2.9", "protocol": "udp" },
            "data": "2e00", "constants": { "most": "5" },
        });
        assert_eq!(of(&pairs), Ok(wanted));
        for wrong in ["where", "key.colour", "name", "links", "key", "colour.red"] {
            let error = of(&[("program", "dscp-marker"), (wrong, "x")]).unwrap_err();
            assert!(
                error.starts_with(&format!("{wrong}: a program has no such setting; it has ")),
                "{error}"
            );
        }
    }
}
