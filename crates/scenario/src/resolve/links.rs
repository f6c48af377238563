//! Links: one for each direction.

use super::blocks::{Profiles, merged};
use super::{Entry, Resolver};
use crate::file::{self, File, overlaid};
use crate::plan::{End, Link, Profile};
use crate::plan_links::Direction;
use crate::read::BESIDE_RATE;
use crate::row::SettingText;
use crate::settings::{DirectionSettings, LinkSettings, Only};
use crate::template;
use crate::written::{Listed, Name, Term};
use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::net::IpAddr;
use std::ops::Range;

/// An address pair whose packets take a link or path: source, destination, place in the file.
pub(super) type Pair = (IpAddr, IpAddr, Range<usize>);

/// Links by place, with what later steps need.
#[derive(Default)]
pub(super) struct Links {
    pub(super) links: Vec<Link>,
    pub(super) profiles: Vec<Profile>,
    /// The place of each in the file.
    pub(super) spans: Vec<Range<usize>>,
    pub(super) names: HashMap<Box<str>, u32>,
    /// Address pairs that choose links.
    pub(super) matches: Vec<(u32, Pair)>,
    /// By place: whether packets take a link only if chosen, by addresses, filters or programs.
    pub(super) matched: Vec<bool>,
    /// By place: whether a link is for routers' programs only; such links are also `matched`.
    pub(super) spare: Vec<bool>,
    /// By place: the name of a link's medium, and its place in the file.
    pub(super) media: Vec<Option<(Box<str>, Range<usize>)>>,
}

/// One direction of an entry.
struct LinkDirection<'e> {
    suffix: &'static str,
    overrides: Option<&'e file::Direction>,
    back: bool,
}

impl LinkDirection<'_> {
    /// The direction of the profiles to which this link is set while it runs: that of its own profile, if
    /// its name selects one for this link alone, else that of the link.
    fn of_profiles(&self, written: &file::Link) -> Direction {
        let simplex = written.profile.as_ref().filter(|_| self.suffix.is_empty());
        let own = self.overrides.and_then(|own| own.profile.as_ref()).or(simplex);
        let selected = own.and_then(|own| Direction::split(&own.text).1);
        selected.unwrap_or(if self.back { Direction::Backward } else { Direction::Forward })
    }
}

/// What is the same for each number of an entry: its settings, and the profile of each direction.
#[derive(Default)]
struct SameForAll {
    settings: Option<LinkSettings>,
    profiles: [Option<u32>; 2],
}

impl Resolver<'_, '_> {
    pub(super) fn links(&mut self, file: &File) -> Links {
        let mut links = Links::default();
        let mut profiles = Profiles::default();
        for written in &file.link {
            let ends = end_texts(written).map(|[from, to]| format!("{from}-{to}"));
            let name = written.name.as_ref().map(|name| &name.text).or(ends.as_ref());
            let entry = Entry { section: "link", name: name.map(String::as_str), n: None };
            let mut same = SameForAll::default();
            for n in self.numbers(&entry, written) {
                let known = (&mut profiles, &mut same);
                if self.link(&Entry { n, ..entry }, written, &mut links, known).is_none() {
                    break;
                }
            }
        }
        links.profiles = profiles.list;
        links
    }

    /// Adds the links of one entry. None after an error.
    fn link(
        &mut self,
        entry: &Entry<'_>,
        written: &file::Link,
        links: &mut Links,
        (profiles, same): (&mut Profiles, &mut SameForAll),
    ) -> Option<()> {
        // All are read, so that all errors are reported.
        let ends = self.ends(entry, written);
        let matches = self.matches(entry, &written.matches);
        let settings = same.settings.or_else(|| self.row(entry, written));
        same.settings = settings.filter(|_| is_same_for_all(&written.row));
        let histogram = settings.is_some_and(|settings| settings.histogram);
        let directions = directions(written);
        let mut read = Vec::with_capacity(directions.len());
        for direction in &directions {
            let known = same.profiles[usize::from(direction.back)];
            let shared = (&mut *profiles, &mut *same);
            let profile = known.or_else(|| self.profile_of(entry, written, direction, histogram, shared));
            let medium = self.medium_of(entry, written, direction);
            read.push(profile.zip(medium));
        }
        let read = read.into_iter().collect::<Option<Vec<_>>>();
        let (ends, matches, LinkSettings { only, .. }, read) = (ends?, matches?, settings?, read?);
        if let (Some(Only::Programs), Some(first)) = (only, matches.first()) {
            let what = "it is for programs only, and match chooses packets for it";
            return self.refuse(&first.2, entry, "match", what, "leave one of the two out");
        }
        for (direction, (profile, medium)) in directions.into_iter().zip(read) {
            let name = self.link_name(entry, written, &direction, links)?;
            let place = links.links.len() as u32;
            for (source, destination, span) in &matches {
                let (source, destination) =
                    if direction.back { (destination, source) } else { (source, destination) };
                links.matches.push((place, (*source, *destination, span.clone())));
            }
            let (from, to) = if direction.back { (ends.1, ends.0) } else { ends };
            let way = direction.of_profiles(written);
            links.links.push(Link { name, profile, from, to, direction: way });
            links.spans.push(written.name.as_ref().map_or(&written.span, |name| &name.span).clone());
            links.media.push(medium);
            links.matched.push(!matches.is_empty() || only.is_some());
            links.spare.push(only.is_some());
        }
        Some(())
    }

    /// The profile of one direction of an entry. None after an error.
    fn profile_of(
        &mut self,
        entry: &Entry<'_>,
        written: &file::Link,
        direction: &LinkDirection<'_>,
        histogram: bool,
        (profiles, same): (&mut Profiles, &mut SameForAll),
    ) -> Option<u32> {
        let own = direction.overrides;
        let texts = overlaid(&written.blocks, own.map_or(&[][..], |own| &own.blocks));
        let name = own.and_then(|own| own.profile.as_ref()).or(written.profile.as_ref());
        let named = name.map(|name| self.profile_texts(entry, name, direction.back, profiles));
        let is_known = !matches!(named, Some(None));
        let named = named.flatten().unwrap_or_default();
        let mut texts = merged(&named, texts);
        if !is_known {
            // The rest is still read, but for what may complete the profile's rate.
            texts.retain(|block| !BESIDE_RATE.contains(&&*block.key));
        }
        let settings: Option<DirectionSettings> =
            self.subtable(entry, direction.suffix.trim_start_matches('.'), own);
        let own_histogram = settings.as_ref().and_then(|settings| settings.histogram);
        let profile = self.profile(entry, &texts, own_histogram.unwrap_or(histogram), profiles);
        let (_, profile) = settings.zip(profile).filter(|_| is_known)?;
        let of_blocks = texts.iter().flat_map(|block| &block.params).map(|(_, text, _)| text);
        let is_same = same.settings.is_some()
            && own.is_none_or(|own| is_same_for_all(&own.row))
            && !of_blocks.chain(name.map(|name| &name.text)).any(|text| text.contains('{'));
        same.profiles[usize::from(direction.back)] = is_same.then_some(profile);
        Some(profile)
    }

    /// The medium of one direction of an entry, and its place in the file. None after an error.
    fn medium_of(
        &mut self,
        entry: &Entry<'_>,
        written: &file::Link,
        direction: &LinkDirection<'_>,
    ) -> Option<Option<(Box<str>, Range<usize>)>> {
        let own = direction.overrides.and_then(|direction| direction.medium.as_ref());
        let medium = own.or(written.medium.as_ref());
        let name = self.optional(entry, "medium", medium)?;
        Some(name.zip(medium).map(|(Name(name), medium)| (name, medium.span.clone())))
    }

    /// Where an entry's first direction begins and ends. None after an error.
    fn ends(&mut self, entry: &Entry<'_>, written: &file::Link) -> Option<(End, End)> {
        let ends = match (&written.from, &written.to, &written.between) {
            (Some(from), Some(to), None) => {
                let (from, to) = (self.end(entry, "from", from), self.end(entry, "to", to));
                if written.forward.is_some() || written.backward.is_some() {
                    let what = "forward and backward belong to a duplex link";
                    let fix = "write between = [\"a\", \"b\"] instead of from and to";
                    return self.refuse(&written.span, entry, "", what, fix);
                }
                (from?, to?)
            }
            (None, None, Some(between)) => {
                let [one, two] = &between.0[..] else {
                    let span = between.0.first().map_or(&written.span, |first| &first.span);
                    let what = format!("between names {} ends", between.0.len());
                    let fix = "name two, as in between = [\"a\", \"b\"]";
                    return self.refuse(span, entry, "between", what, fix);
                };
                let (one, two) = (self.end(entry, "between", one), self.end(entry, "between", two));
                (one?, two?)
            }
            _ => {
                let what = "a link has either from and to (simplex), or between (duplex)";
                let fix = "write from = \"a\" and to = \"b\", or between = [\"a\", \"b\"]";
                return self.refuse(&written.span, entry, "", what, fix);
            }
        };
        if ends.0 == ends.1 {
            let (what, fix) = ("it begins and ends at the same place", "name two different ends");
            return self.refuse(&written.span, entry, "", what, fix);
        }
        Some(ends)
    }

    /// The name of the next link, which is then among the names. None after an error.
    fn link_name(
        &mut self,
        entry: &Entry<'_>,
        written: &file::Link,
        direction: &LinkDirection<'_>,
        links: &mut Links,
    ) -> Option<Box<str>> {
        let span = written.name.as_ref().map_or(&written.span, |name| &name.span);
        let name: Box<str> = match &written.name {
            Some(name) => {
                let Name(name) = self.term(entry, "name", name)?;
                if direction.suffix.is_empty() { name } else { format!("{name}{}", direction.suffix).into() }
            }
            None => {
                let mut ends =
                    end_texts(written)?.map(|text| template::expand(text, entry.n).unwrap_or_default());
                if direction.back {
                    ends.reverse();
                }
                match Name::read(&ends.join("-")) {
                    Ok(Name(name)) => name,
                    Err(what) => return self.refuse(span, entry, "name", what, "give the link a name"),
                }
            }
        };
        if let Slot::Vacant(slot) = links.names.entry(name.clone()) {
            slot.insert(links.links.len() as u32);
        } else {
            let fix = match (&written.name, entry.n) {
                (Some(_), None) => "rename one",
                (Some(_), Some(_)) => "put {n} into the name, so that each has its own",
                (None, _) => "give each a name of its own",
            };
            return self.refuse(span, entry, "name", format!("there are two links named \"{name}\""), fix);
        }
        Some(name)
    }

    /// Address pairs. None after an error.
    pub(super) fn matches(&mut self, entry: &Entry<'_>, list: &[file::Match]) -> Option<Vec<Pair>> {
        let mut pairs = Vec::with_capacity(list.len());
        for written in list {
            let source: IpAddr = self.term(entry, "match.source", &written.source)?;
            let destination: IpAddr = self.term(entry, "match.destination", &written.destination)?;
            if source.is_ipv4() != destination.is_ipv4() {
                let what = format!("{source} and {destination} are of different families");
                let fix = "no packet has both: write two IPv4 or two IPv6 addresses";
                return self.refuse(&written.destination.span, entry, "match", what, fix);
            }
            pairs.push((source, destination, written.source.span.clone()));
        }
        Some(pairs)
    }
}

/// The ends of an entry as written, those of its first direction.
fn end_texts(written: &file::Link) -> Option<[&str; 2]> {
    let ends = match (&written.from, &written.to, &written.between) {
        (Some(from), Some(to), _) => [from, to],
        (_, _, Some(Listed(between))) => between.iter().collect::<Vec<_>>().try_into().ok()?,
        _ => return None,
    };
    Some(ends.map(|end| &*end.text))
}

/// The directions of an entry.
fn directions(written: &file::Link) -> Vec<LinkDirection<'_>> {
    if written.between.is_none() && written.forward.is_none() && written.backward.is_none() {
        return vec![LinkDirection { suffix: "", overrides: None, back: false }];
    }
    vec![
        LinkDirection { suffix: ".forward", overrides: written.forward.as_ref(), back: false },
        LinkDirection { suffix: ".backward", overrides: written.backward.as_ref(), back: true },
    ]
}

/// Whether settings have no templates.
fn is_same_for_all(row: &[SettingText]) -> bool {
    !row.iter().any(|(_, text, _)| text.contains('{'))
}
