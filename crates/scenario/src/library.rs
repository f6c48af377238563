//! The profile library: named characteristics of links, each with its source.
//!
//! A profile is a file under `profiles/` shipped with the program, or a user's own. It has keys of
//! `[[link]]`: for both directions, for `forward` (to the user, down), and for `backward` (from the user,
//! up).

use crate::file::{BlockText, ProfileFile, overlaid};
use crate::finding::{Findings, ScenarioError};
use crate::plan::Plan;
pub use crate::plan_links::Direction;
use crate::read::read_profile;
use longwire_block::{Settings, Spec, Values};
use longwire_link::transmit::trace::TraceSettings;
use longwire_units::Rate;

/// A profile shipped with the program.
#[derive(Debug, Clone, Copy)]
pub struct ShippedProfile {
    /// Its name, as in `profile = "lte"`.
    pub name: &'static str,
    /// The file.
    pub text: &'static str,
}

/// Makes the list of profiles from the names of their files.
macro_rules! shipped {
    ($($name:literal,)+) => {
        /// All of them, the slowest technology first.
        pub const SHIPPED: &[ShippedProfile] = &[
            $(ShippedProfile {
                name: $name,
                text: include_str!(concat!("../../../profiles/", $name, ".toml")),
            },)+
        ];
    };
}

shipped! {
    "dial-up-28k",
    "dial-up-56k",
    "isdn",
    "t1",
    "adsl",
    "vdsl",
    "cable",
    "fibre",
    "3g",
    "lte",
    "5g",
    "leo",
    "geo",
    "wifi-lossy",
    "ethernet-10",
    "transatlantic",
    "data-centre",
}

/// The description of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// A short description.
    pub summary: String,
    /// The sources of its figures, and which of them are typical rather than measured.
    pub source: String,
    /// The direction to the user.
    pub forward: Figures,
    /// The direction from the user.
    pub backward: Figures,
}

/// The figures of one direction as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figures {
    /// The rate, or the mean of a varying rate: `about 13 Mbit/s`.
    pub rate: String,
    /// The delay: `30 ms ± 5 ms`.
    pub delay: String,
    /// The loss, or `none`.
    pub loss: String,
    /// The queue.
    pub queue: String,
}

impl ShippedProfile {
    /// The profile of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        SHIPPED.iter().find(|shipped| shipped.name == name)
    }

    /// The settings of one direction as pairs of setting and text: `delay.kind` and `jitter`, `delay.jitter`
    /// and `5 ms`.
    ///
    /// # Errors
    /// Errors of its file; tests check that there are none.
    pub fn settings(&self, direction: Direction) -> Result<Vec<(String, String)>, ScenarioError> {
        let named = read(self.name, self.text, &longwire_link::registry())?;
        let mut pairs = Vec::new();
        for BlockText { key, kind, params, .. } in named.direction(direction) {
            pairs.extend(kind.map(|(kind, _)| (format!("{key}.kind"), kind)));
            pairs.extend(params.into_iter().map(|(name, text, _)| match name {
                Some(name) => (format!("{key}.{name}"), text),
                None => (key.clone(), text),
            }));
        }
        Ok(pairs)
    }

    /// Its description.
    ///
    /// # Errors
    /// Errors of its file; tests check that there are none.
    pub fn description(&self) -> Result<Description, ScenarioError> {
        let named = read(self.name, self.text, &longwire_link::registry())?;
        let host = |name, n| format!("[[host]]\nname = \"{name}\"\naddress = \"192.0.2.{n}/24\"\n");
        let link = format!("[[link]]\nbetween = [\"a\", \"b\"]\nprofile = \"{}\"\n", self.name);
        let text = host("a", 1) + &host("b", 2) + &link;
        let plan = crate::parse(self.name, &text)?;
        let [forward, backward] = [0, 1].map(|place| figures(&plan, place));
        Ok(Description { summary: named.summary, source: named.source, forward, backward })
    }
}

/// Reads a profile's text; `file` is how errors name it.
pub(crate) fn read(file: &str, text: &str, registry: &[&'static Spec]) -> Result<ProfileFile, ScenarioError> {
    let mut findings = Findings::new(file, text);
    let named = read_profile(text, registry, &mut findings);
    findings.finish()?;
    Ok(named.expect("a profile without errors has been read"))
}

impl ProfileFile {
    /// The settings of one direction.
    pub(crate) fn direction(&self, direction: Direction) -> Vec<BlockText> {
        overlaid(&self.blocks, &self.directions[direction as usize]).into_iter().cloned().collect()
    }
}

fn figures(plan: &Plan, link: usize) -> Figures {
    let figure = |key, none: &str, shown: fn(&Spec, &Values) -> String| {
        plan.profile(link).block(key).map_or(none.into(), |(spec, values)| shown(spec, values))
    };
    Figures {
        rate: figure("rate", "unlimited", |spec, values| match spec.kind {
            "trace" => format!("about {}", rounded(TraceSettings::of(values).file.mean())),
            _ => print(spec, values, 0),
        }),
        delay: figure("delay", "0 ms", |spec, values| match spec.kind {
            "jitter" => format!("{} ± {}", print(spec, values, 0), print(spec, values, 1)),
            _ => print(spec, values, 0),
        }),
        loss: figure("loss", "none", |spec, values| match spec.kind {
            "burst" => format!("{} in bursts of {}", print(spec, values, 0), print(spec, values, 1)),
            _ => print(spec, values, 0),
        }),
        queue: figure("queue", "1000 packets", |spec, values| match spec.kind {
            "tail-drop" => print(spec, values, 0),
            kind => format!("{kind}, {}", print(spec, values, 0)),
        }),
    }
}

/// The rate with its two highest digits.
fn rounded(Rate(rate): Rate) -> Rate {
    let unit = 10u64.pow(rate.checked_ilog10().unwrap_or(0).saturating_sub(1));
    Rate((rate + unit / 2) / unit * unit)
}

fn print(spec: &Spec, values: &Values, at: usize) -> String {
    values.at(at).print(spec.params[at].kind)
}
