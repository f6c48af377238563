//! Settings of routers, their flows and their programs.
//!
//! A router has a setting `route.NETWORK` for each of its routes, with a value as `ip route` writes it after
//! the network. A named flow that shares its processors is the object `ROUTER/FLOW`, with a setting `weight`.
//! A program is the object `ROUTER/NAME`.

use super::ObjectChange;
use super::routers::{LiveRouters, MOST_SHOWN, gone};
use super::settings::{SettingPair, Settings};
use crate::programs::wrong;
use longwire_assemble::change_router;
use longwire_control::{
    Bounds, Kind, NewForwarder, NewState, ProgramRequest, Quantity, SetError, Settable, TypeQuery,
};
use longwire_engine::Remote;
use longwire_router::Router;
use longwire_scenario::{RouteChange, RouteTarget, RouterRoute, WrittenForwarder, WrittenRoute};
use longwire_sched::Weight;
use serde_json::{Map, Value};

/// The prefix of settings for routes.
pub(crate) const ROUTE: &str = "route.";
/// The setting of a flow.
const WEIGHT: &str = "weight";
/// The setting that installs or removes a program, and that of its state.
const PROGRAM: &str = "program";
const DATA: &str = "data";
/// The value that removes something.
const NONE: &str = "none";
/// The longest state that is shown: its digits, two per byte, fit the longest value.
const LONGEST_DATA: usize = longwire_nesp::MOST_TEXT / 2;
/// Settings of a new program besides its state.
const PLAIN: [&str; 5] = [PROGRAM, "state", "port", "via", "queue"];
const KEY: [&str; 5] = ["source", "source-port", "destination", "destination-port", "protocol"];

impl LiveRouters {
    /// A router's settings: its routes, except for those to its own addresses, up to as many as are shown.
    ///
    /// # Errors
    /// If there is no such router, or it does not answer.
    pub fn settings(&self, remote: &Remote, name: &str) -> Result<Settings, SetError> {
        self.settings_among(remote, self.place(name)?, MOST_SHOWN + 1)
    }

    /// The settings of the router at this place in the plan, up to so many.
    ///
    /// # Errors
    /// If it does not answer.
    pub(crate) fn settings_among(
        &self,
        remote: &Remote,
        place: usize,
        most: usize,
    ) -> Result<Settings, SetError> {
        let router = &self.plan.routers[place];
        let routes = self.known_routes(remote, place, most)?;
        Ok(routes.iter().filter_map(|route| route_setting(router, route)).collect())
    }

    /// The names, `ROUTER/FLOW`, of the flows that share routers' processors.
    pub fn flow_names(&self) -> Vec<String> {
        let each = self.plan.routers.iter().flat_map(|router| {
            let flows = router.sharing.iter().flat_map(|sharing| &sharing.flows);
            flows.map(|flow| format!("{}/{}", router.name, flow.name))
        });
        each.collect()
    }

    /// A flow's weight and counters.
    ///
    /// # Errors
    /// If there is no such flow, or its router does not answer.
    pub fn flow(&self, remote: &Remote, name: &str) -> Result<(Settings, Value), SetError> {
        let (place, flow) = self.flow_place(name)?;
        let processors = remote.at_node(self.refs[place], |router: &mut Router, _| router.processors());
        let flows = processors.map_err(gone)?.map(|all| all.flows).unwrap_or_default();
        let found = flows.iter().find(|known| *known.flow == *flow);
        let found =
            found.ok_or_else(|| SetError::Unavailable("the router does not know it at present".into()))?;
        let settings = Settings::from([(WEIGHT.to_owned(), found.weight.to_string())]);
        Ok((settings, serde_json::to_value(found).unwrap_or_default()))
    }

    /// A flow's router, by place in the plan, and its name there.
    fn flow_place<'n>(&self, name: &'n str) -> Result<(usize, &'n str), SetError> {
        let none = || SetError::Unknown { kind: Kind::Flow, name: name.into() };
        let (router, flow) = name.split_once('/').ok_or_else(none)?;
        let place = self.place(router).map_err(|_| none())?;
        let mut flows = self.plan.routers[place].sharing.iter().flat_map(|sharing| &sharing.flows);
        if flows.any(|known| *known.name == *flow) { Ok((place, flow)) } else { Err(none()) }
    }

    /// Changes routes of a router and weights of its flows: all at one instant or none.
    ///
    /// # Errors
    /// If there is no such router or flow, they belong to several routers, or a value is invalid.
    pub fn set(&self, remote: &Remote, changes: &[ObjectChange]) -> Result<(), SetError> {
        let (mut routes, mut weights, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for ObjectChange { kind, name, pairs } in changes {
            if *kind == Kind::Flow {
                let (place, flow) = self.flow_place(name)?;
                places.push(place);
                for (key, value) in pairs {
                    weights.push((Box::from(flow), weight(key, value)?));
                }
                continue;
            }
            let place = self.place(name)?;
            places.push(place);
            for (key, value) in pairs {
                let Some(to) = key.strip_prefix(ROUTE) else {
                    let known = vec!["route.NETWORK, such as route.10.1.0.0/16".to_owned()];
                    return Err(SetError::UnknownKey { kind: Kind::Router, key: key.clone(), known });
                };
                self.check_has_routes(place)?;
                let change = self.route_change(place, to, value);
                routes.push(change.map_err(|reason| wrong(key, reason))?);
            }
        }
        places.dedup();
        let [place] = places[..] else {
            return Err(SetError::Refused("changes of several routers can't be made at one instant".into()));
        };
        let change = move |router: &mut Router, _| change_router(router, &routes, &weights);
        let done = remote.at_node(self.refs[place], change);
        self.note_change(place);
        done.map_err(gone)?.map_err(|reason| wrong(changes[0].kind.word(), reason))
    }

    fn route_change(&self, place: usize, to: &str, value: &str) -> Result<RouteChange, String> {
        let router = &self.plan.routers[place];
        if matches!(value.trim(), "" | NONE) {
            return router.removal(to.parse::<RouteTarget>()?);
        }
        let text = match value.trim() {
            word @ ("blackhole" | "unreachable") => format!("{word} {to}"),
            way => format!("{to} {way}"),
        };
        WrittenRoute::read(&text).and_then(|route| router.route(&route)).map(RouteChange::Add)
    }

    /// The names, `ROUTER/NAME`, of all programs, router by router. Duplicates are removed.
    pub fn program_names(&self, remote: &Remote) -> Vec<String> {
        let mut names = Vec::new();
        for (router, table) in self.plan.routers.iter().zip(self.programs(remote)) {
            for program in table.iter().flat_map(|table| table.all()) {
                let name = format!("{}/{}", router.name, program.installation().name);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        names
    }

    /// A program's settings and state; none if there is no such program.
    ///
    /// # Errors
    /// If several have this name, or the router does not answer.
    pub fn program_settings(&self, remote: &Remote, name: &str) -> Result<Option<Settings>, SetError> {
        let Some((router, program)) = self.program(remote, name)? else { return Ok(None) };
        let fid = number_of(&program)?;
        let mut settings = Settings::new();
        for key in ["fid", "key", "where", "state", "port", "via", "queue", "packets", "dropped"] {
            let text = match &program[key] {
                Value::Null => continue,
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            settings.insert(key.to_owned(), text);
        }
        let held = self.forwarders(remote, router, &ProgramRequest::Get(fid, TypeQuery::default()))?;
        // A truncated state would be mistaken for the whole.
        if let Some(data) = held["data"].as_str().filter(|data| data.len() <= 2 * LONGEST_DATA) {
            settings.insert(DATA.into(), data.to_owned());
        }
        Ok(Some(settings))
    }

    /// Installs a shipped program under a unique name, removes the one with that name, or writes its state.
    ///
    /// # Errors
    /// If there is no such router or program, the name of a new one is taken, or the router refuses; then
    /// nothing has changed.
    pub fn set_program(&self, remote: &Remote, name: &str, pairs: &[SettingPair]) -> Result<(), SetError> {
        let program = pairs.iter().rev().find(|(key, _)| key == PROGRAM).map(|(_, value)| value.trim());
        let there = self.program(remote, name)?;
        let none = |there: &str| wrong(PROGRAM, format!("there is {there} program \"{name}\""));
        let (router, ask) = match (program, there) {
            (Some("" | NONE), Some((router, found))) if pairs.len() == 1 => {
                (router, ProgramRequest::Remove(number_of(&found)?))
            }
            (Some("" | NONE), Some(_)) => {
                return Err(wrong(PROGRAM, "what is removed has no settings".into()));
            }
            (Some("" | NONE) | None, None) => return Err(none("no")),
            (Some(_), Some(_)) => return Err(none("already a")),
            (Some(_), None) => {
                let (router, called) = self.named(name)?;
                let forwarder = written(called, pairs)?;
                (router, ProgramRequest::Install(NewForwarder { forwarder, ..NewForwarder::default() }))
            }
            (None, Some((router, found))) => match pairs {
                [(key, data)] if key == DATA => (
                    router,
                    ProgramRequest::Set(number_of(&found)?, NewState { data: data.clone(), kind: None }),
                ),
                _ => {
                    let reason = "of a program that is there only data can be set; all else is chosen when \
                        it is installed";
                    return Err(wrong(PROGRAM, reason.into()));
                }
            },
        };
        self.forwarders(remote, router, &ask).map(drop)
    }

    /// The names of the router and the program.
    fn named<'n>(&self, name: &'n str) -> Result<(&'n str, &'n str), SetError> {
        let both = name
            .split_once('/')
            .filter(|(router, program)| !program.is_empty() && self.place(router).is_ok());
        both.ok_or_else(|| SetError::Unknown { kind: Kind::Forwarder, name: name.into() })
    }

    /// A program by name, as it is listed, and its router; none if there is no such program.
    fn program<'n>(&self, remote: &Remote, name: &'n str) -> Result<Option<(&'n str, Value)>, SetError> {
        let (router, called) = self.named(name)?;
        let mut list = self.forwarders(remote, router, &ProgramRequest::List)?;
        let all = list["forwarders"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let mut same = all.into_iter().filter(|one| one["name"] == called);
        let first = same.next();
        if same.next().is_some() {
            let reason =
                format!("several programs are named \"{name}\": longwire forwarder addresses them by number");
            return Err(wrong(PROGRAM, reason));
        }
        Ok(first.map(|program| (router, program)))
    }
}

/// A route as a setting; none of a route to the router's own addresses, which can't be changed.
pub(crate) fn route_setting(
    router: &longwire_scenario::Router,
    route: &RouterRoute,
) -> Option<(String, String)> {
    let (to, written) = (route.to.to_string(), router.written(route));
    let way = match written.split_once(' ') {
        Some((first, way)) if first == to => way,
        Some(("blackhole", _)) => "blackhole",
        _ => return None,
    };
    Some((format!("{ROUTE}{to}"), way.to_owned()))
}

/// Settings that a change of a router may name.
pub(super) fn of_routers() -> Vec<Settable> {
    let takes = "its target, as ip route writes it: via 10.0.0.2; none removes it".to_owned();
    vec![Settable::new("route.NETWORK", "a route to that network", takes, Quantity::Other)]
}

/// Settings that a change of a flow may name.
pub(super) fn of_flows() -> Vec<Settable> {
    let takes = "an integer from 1 to 65535".to_owned();
    let weights = Quantity::Integer(Bounds { least: 1, most: Weight::MOST.number().into() });
    vec![Settable::new(WEIGHT, "its share relative to others", takes, weights)]
}

/// Settings that a change of a forwarder may name.
pub(super) fn of_forwarders() -> Vec<Settable> {
    let setting = |key: &str, help, takes: &str| Settable {
        only_new: true,
        ..Settable::new(key, help, takes.into(), Quantity::Other)
    };
    let data = "hexadecimal digits, two a byte";
    let mut all = vec![
        Settable { only_new: false, ..setting(DATA, "what its state holds", data) },
        setting(PROGRAM, "installs a shipped program; none removes it", "a program's name, or none"),
        setting("constants.NAME", "a constant of a new program", "a number, or several"),
        setting("maps.NAME", "the size of a map of a new program", "a number of entries"),
    ];
    all.extend(
        PLAIN[1..].iter().map(|key| setting(key, "of a new program", "what a scenario's forwarder takes")),
    );
    all.extend(KEY.map(|key| {
        setting(
            &format!("key.{key}"),
            "of a new program: the key of its packets",
            "an address, a port or a protocol",
        )
    }));
    all
}

fn weight(key: &str, value: &str) -> Result<Weight, SetError> {
    if key != WEIGHT {
        let known = vec![WEIGHT.to_owned()];
        return Err(SetError::UnknownKey { kind: Kind::Flow, key: key.into(), known });
    }
    let number = value.trim().parse().ok().and_then(|weight| Weight::new(weight).ok());
    number.ok_or_else(|| wrong(key, format!("\"{value}\" is not a weight; give an integer from 1 to 65535")))
}

fn number_of(program: &Value) -> Result<u32, SetError> {
    let fid = program["fid"].as_u64().and_then(|fid| u32::try_from(fid).ok());
    fid.ok_or_else(|| SetError::Unavailable("the router's list of programs can't be read".into()))
}

/// A program to be installed, in a scenario's form.
fn written(called: &str, pairs: &[SettingPair]) -> Result<Value, SetError> {
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
    // Reports errors before the router is asked.
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
            let pairs: Vec<SettingPair> = pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
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
