//! The sections of a scenario file as written. Reading, errors about unknown keys and the JSON schema all
//! come from these structures and, for links, from the block registry.

use crate::address::{Mac, Network, RouteTarget};
use crate::event::ObjectKind;
use crate::file_router::{Forwarder, Router};
use crate::row::{Params, Repeated, Row, WithSettings};
use crate::settings::{
    AtSettings, BridgeSettings, DirectionSettings, EngineSettings, Fidelity, HostSettings, LinkSettings,
    NespSettings, ScenarioSettings, SourceSettings,
};
use crate::written::{Listed, Name, Text, Whole, Written};
use longwire_drivers::Driver;
use schemars::JsonSchema;
use serde::Deserialize;
use std::net::IpAddr;
use std::ops::Range;

pub(crate) type Engine = WithSettings<EngineKeys, EngineSettings>;
pub(crate) type Nesp = WithSettings<NespKeys, NespSettings>;
pub(crate) type Host = Repeated<WithSettings<HostKeys, HostSettings>>;
pub(crate) type Bridge = Repeated<WithSettings<BridgeKeys, BridgeSettings>>;
pub(crate) type Port = Repeated<PortKeys>;
pub(crate) type Path = Repeated<PathKeys>;
pub(crate) type Link = Repeated<WithSettings<LinkKeys, LinkSettings>>;
pub(crate) type Direction = WithSettings<DirectionKeys, DirectionSettings>;
pub(crate) type Source = Repeated<WithSettings<SourceKeys, SourceSettings>>;
pub(crate) type At = Repeated<WithSettings<AtKeys, AtSettings>>;

/// A network of Longwire: hosts and ports, bridges, and the links between them.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct File {
    /// Settings of the whole scenario.
    #[serde(skip)]
    pub(crate) whole: Row<ScenarioSettings>,
    /// How the engine runs.
    pub(crate) engine: Option<Engine>,
    /// When a run is faithful.
    pub(crate) fidelity: Option<Row<Fidelity>>,
    /// Who may read and change settings by frames (NESP). Default: nobody.
    pub(crate) nesp: Option<Nesp>,
    /// Test hosts, each a network namespace with one interface.
    #[serde(default)]
    pub(crate) host: Vec<Host>,
    /// Where packets enter and leave.
    #[serde(default)]
    pub(crate) port: Vec<Port>,
    /// Learning bridges. Default: one that joins all hosts and ports without a router.
    #[serde(default)]
    pub(crate) bridge: Vec<Bridge>,
    /// Routers.
    #[serde(default)]
    pub(crate) router: Vec<Router>,
    /// Programs on the data path of routers.
    #[serde(default)]
    pub(crate) forwarder: Vec<Forwarder>,
    /// Links, simplex (from, to) or duplex (between).
    #[serde(default)]
    pub(crate) link: Vec<Link>,
    /// Media that several links share: a wire, or a channel.
    #[serde(default)]
    pub(crate) medium: Vec<Medium>,
    /// Paths that are set instead of computed.
    #[serde(default)]
    pub(crate) path: Vec<Path>,
    /// Traffic sources within Longwire.
    #[serde(default)]
    pub(crate) source: Vec<Source>,
    /// Changes during the run.
    #[serde(default)]
    pub(crate) at: Vec<At>,
}

/// How the engine runs.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct EngineKeys {
    /// Processors to pin the workers to, one each. Default: not pinned.
    #[serde(default)]
    pub(crate) cpus: Listed<Whole>,
}

/// Access to settings by frames from ports (NESP).
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct NespKeys {
    /// The file with the shared key, readable by its owner only; longwire nesp key FILE makes one.
    pub(crate) key_file: Written<Text>,
    /// The hosts and ports from which it is allowed.
    pub(crate) ports: Listed<Name>,
    /// The address of NESP over UDP and IPv4, with or without a port (8805). Default: not over IPv4.
    pub(crate) udp: Option<Written<Text>>,
    /// The address of NESP over UDP and IPv6: `fd00::fe`, or `[fd00::fe]:8805`. Default: not over IPv6.
    pub(crate) udp6: Option<Written<Text>>,
}

/// A test host.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct HostKeys {
    /// Its name.
    pub(crate) name: Written<Name>,
    /// Addresses of its interface, with prefix lengths.
    pub(crate) address: Listed<Network>,
    /// Hardware address. Default: made from its place in the file.
    pub(crate) mac: Option<Written<Mac>>,
    /// Default gateway, one for each family at most.
    #[serde(default)]
    pub(crate) gateway: Listed<IpAddr>,
    /// Further routes.
    #[serde(default)]
    pub(crate) routes: Vec<HostRoute>,
    /// Its bridge. Default: that of its link, or the only one.
    pub(crate) bridge: Option<Written<Name>>,
}

/// A route of a host.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct HostRoute {
    /// Destination; "default" is all of IPv4, or of IPv6 if the gateway is IPv6.
    pub(crate) to: Written<RouteTarget>,
    /// The gateway.
    pub(crate) via: Written<IpAddr>,
}

/// Where packets enter and leave.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct PortKeys {
    /// Its name.
    pub(crate) name: Written<Name>,
    /// Where its frames come from and go to.
    pub(crate) driver: Written<&'static Driver>,
    /// Addresses behind it.
    #[serde(default)]
    pub(crate) addresses: Listed<Network>,
    /// Hardware address behind it, for traffic sources. Default: made from its place in the file.
    pub(crate) mac: Option<Written<Mac>>,
    /// Its bridge. Default: that of its link, or the only one.
    pub(crate) bridge: Option<Written<Name>>,
    #[serde(skip)]
    pub(crate) params: Params,
}

/// A learning bridge.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct BridgeKeys {
    /// Its name.
    pub(crate) name: Written<Name>,
}

/// A link. Its other keys are those of the block registry.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct LinkKeys {
    /// Its name. Default: its ends, as a-b.
    pub(crate) name: Option<Written<Name>>,
    /// The host, port or bridge where it begins.
    pub(crate) from: Option<Written<Name>>,
    /// The host, port or bridge where it ends.
    pub(crate) to: Option<Written<Name>>,
    /// Both ends of a duplex link: two links, name.forward and name.backward.
    pub(crate) between: Option<Listed<Name>>,
    /// The packets that take it, by address. Default: all from its one end to the other.
    #[serde(rename = "match", default)]
    pub(crate) matches: Vec<Match>,
    /// The profile for settings that the link's own keys don't give: "lte", or a profile's file. A simplex
    /// link takes the forward direction, unless the name ends with .backward.
    pub(crate) profile: Option<Written<Text>>,
    /// The shared medium it sends on, instead of a rate of its own.
    pub(crate) medium: Option<Written<Name>>,
    /// Settings of the direction from the first end of between.
    #[schemars(skip)]
    pub(crate) forward: Option<Direction>,
    /// Settings of the other direction.
    #[schemars(skip)]
    pub(crate) backward: Option<Direction>,
    /// Values of the registry's keys.
    #[serde(skip)]
    pub(crate) blocks: Vec<BlockText>,
    /// The entry's place in the file.
    #[serde(skip)]
    pub(crate) span: Range<usize>,
}

/// One direction of a duplex link. Its other keys are those of the block registry.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct DirectionKeys {
    /// The profile of this direction.
    pub(crate) profile: Option<Written<Text>>,
    /// The shared medium it sends on, instead of a rate of its own.
    pub(crate) medium: Option<Written<Name>>,
    /// Values of the registry's keys.
    #[serde(skip)]
    pub(crate) blocks: Vec<BlockText>,
}

/// A profile file: named characteristics of links. Its other keys are those of the block registry.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ProfileFile {
    /// A short description.
    #[serde(default)]
    pub(crate) summary: String,
    /// The source of its figures.
    #[serde(default)]
    pub(crate) source: String,
    /// Settings of both directions.
    #[serde(skip)]
    pub(crate) blocks: Vec<BlockText>,
    /// Settings of the direction to the user only, and of the direction from the user.
    #[serde(skip)]
    pub(crate) directions: [Vec<BlockText>; 2],
}

/// A direction's section of a profile: all its keys are those of the block registry.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProfileSection {}

/// A medium that several links share. Its other keys are the parameters of its kind.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Medium {
    /// Its name.
    pub(crate) name: Written<Name>,
    /// "half-duplex", "csma-cd" or "dcf".
    pub(crate) kind: Written<Text>,
    /// A named set of parameters, overridden by its own keys. For dcf: "fhss", "802.11b", "802.11g",
    /// "802.11a".
    pub(crate) profile: Option<Written<Text>>,
    /// Its parameters: name, text, place of the value.
    #[serde(skip)]
    pub(crate) params: Params,
}

/// A pair of addresses.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Match {
    /// Source address.
    pub(crate) source: Written<IpAddr>,
    /// Destination address.
    pub(crate) destination: Written<IpAddr>,
}

/// A path that is set instead of computed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct PathKeys {
    /// The host or port where it begins.
    pub(crate) from: Written<Name>,
    /// The host or port where it ends.
    pub(crate) to: Written<Name>,
    /// The links in the order in which packets pass them.
    pub(crate) links: Listed<Name>,
    /// The packets that take it, by address. Default: all from its one end to the other.
    #[serde(rename = "match", default)]
    pub(crate) matches: Vec<Match>,
}

/// UDP datagrams that Longwire sends.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct SourceKeys {
    /// Its name. Default: its ends, as a-b.
    pub(crate) name: Option<Written<Name>>,
    /// The host or port where they enter.
    pub(crate) from: Written<Name>,
    /// The host or port they are sent to.
    pub(crate) to: Written<Name>,
    /// Source address. Default: the first of from.
    pub(crate) source: Option<Written<IpAddr>>,
    /// Destination address. Default: the first of to in the same family.
    pub(crate) destination: Option<Written<IpAddr>>,
    /// Settings that can change, as in [`AtKeys`]: name, text, place of the value.
    #[serde(skip)]
    pub(crate) params: Params,
}

/// A change at a time of the run. Its other keys are the settings of a link, source or medium that change.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct AtKeys {
    /// The link, or a list of links; a duplex link's name means both of its directions.
    pub(crate) link: Option<Listed<Name>>,
    /// The traffic source, or a list of sources, instead of a link; keys that change are its model and the
    /// model's parameters, to, destination, packets, for and state.
    pub(crate) source: Option<Listed<Name>>,
    /// The medium, or a list of media, instead of a link; keys that change are its parameters.
    pub(crate) medium: Option<Listed<Name>>,
    /// The router, instead of a link, whose routes or flow weight change.
    pub(crate) router: Option<Written<Name>>,
    /// Routes to add to the router: "10.1.0.0/16 via 10.0.0.2", or a list of such.
    #[serde(default)]
    pub(crate) add_route: Listed<Text>,
    /// Networks whose routes are removed from the router, or a list of them; "default" is all addresses.
    #[serde(default)]
    pub(crate) remove_route: Listed<RouteTarget>,
    /// Objects to add, alone in their entry: { link = { … } } with the keys of a [[link]], or the text of
    /// sections.
    #[schemars(with = "Option<serde_json::Value>")]
    pub(crate) add: Option<Written<Text>>,
    /// Links to remove, alone in their entry or with add.
    pub(crate) remove: Option<Listed<Name>>,
    /// The name of a flow that shares the router's processors and gets a new weight.
    pub(crate) flow: Option<Written<Name>>,
    /// Values of the registry's keys.
    #[serde(skip)]
    pub(crate) blocks: Vec<BlockText>,
    /// The entry's place in the file.
    #[serde(skip)]
    pub(crate) span: Range<usize>,
}

impl AtKeys {
    /// The links, sources and media that it names, as far as there are such keys.
    pub(crate) fn objects(&self) -> impl Iterator<Item = (ObjectKind, &Listed<Name>)> {
        let (links, sources, media) = (&self.link, &self.source, &self.medium);
        let each = [(ObjectKind::Links, links), (ObjectKind::Sources, sources), (ObjectKind::Media, media)];
        each.into_iter().filter_map(|(object, names)| Some((object, names.as_ref()?)))
    }
}

/// A block in the file: one key of the block registry.
#[derive(Clone)]
pub(crate) struct BlockText {
    /// The key: `rate`.
    pub(crate) key: String,
    /// The kind of block and its place, if given.
    pub(crate) kind: Option<(String, Range<usize>)>,
    /// Parameters: name (none for the one that a bare value sets), text, place of the value.
    pub(crate) params: Vec<(Option<String>, String, Range<usize>)>,
    /// The place of its value.
    pub(crate) span: Range<usize>,
}

/// The texts of both directions, overridden by those of one.
pub(crate) fn overlaid<'b>(shared: &'b [BlockText], own: &'b [BlockText]) -> Vec<&'b BlockText> {
    let kept = shared.iter().filter(|block| !own.iter().any(|other| other.key == block.key));
    kept.chain(own).collect()
}
