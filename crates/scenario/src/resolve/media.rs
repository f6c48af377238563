//! Section `[[medium]]`: shared media.

use super::links::Links;
use super::{Entry, Resolver, some};
use crate::file::{self, BlockText, File};
use crate::finding::name_hint;
use crate::link_edit::{BlockPatch, FaultPlace, LinkFault, bare, link_edit, near, no_such_parameter};
use crate::plan::Medium;
use crate::source::KeyFault;
use crate::written::Name;
use longwire_block::change::{Blocks, Edit};
use longwire_block::{Spec, Values};
use longwire_link::{MEDIA, check_medium, medium_profiles};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;

/// Most stations of a medium: costs grow with their number.
const MOST_STATIONS: usize = 4096;

/// The edit that `pairs` of parameter and text make on a medium with the blocks `now`.
///
/// # Errors
/// The faulty parameters, at least one, each with its fault.
pub fn medium_edit(now: &Blocks, pairs: &[(&str, &str)]) -> Result<Edit, Vec<KeyFault>> {
    let Some((spec, _)) = now.first() else {
        return Err(vec![KeyFault::new("", "there is no medium", "")]);
    };
    let params: Vec<_> = pairs.iter().map(|(name, text)| (Some(*name), *text)).collect();
    let patch = BlockPatch { key: spec.key, kind: Some(spec.kind), params: &params };
    let wrong = |LinkFault { place, what, fix }| {
        let name = if let FaultPlace::Param(number, ..) = place { pairs[number].0 } else { "" };
        KeyFault::new(name, if fix.is_empty() { what } else { format!("{what}; {fix}") }, "")
    };
    let edit = link_edit(MEDIA, now, patch, Path::new("."))
        .map_err(|faults| faults.into_iter().map(wrong).collect::<Vec<_>>())?;
    if let Some((spec, values)) = edit.apply(now) {
        check_medium(spec, &values).map_err(|(name, what)| vec![KeyFault::new(name, what, "")])?;
    }
    Ok(edit)
}

impl Resolver<'_, '_> {
    /// The media, without links. Incomplete after an error.
    pub(super) fn media(&mut self, file: &File) -> Vec<(Medium, Range<usize>)> {
        let mut media: Vec<(Medium, Range<usize>)> = Vec::new();
        let mut names = HashSet::new();
        for written in &file.medium {
            let entry = Entry { section: "medium", name: Some(&written.name.text), n: None };
            let Some(Name(name)) = self.term(&entry, "name", &written.name) else { continue };
            if !names.insert(name.clone()) {
                let what = format!("there are two media named \"{name}\"");
                self.error(&written.name.span, &entry, "name", what, "rename one");
                continue;
            }
            let Some((spec, values)) = self.medium(&entry, written) else { continue };
            media.push((Medium { name, spec, values, links: Vec::new() }, written.name.span.clone()));
        }
        media
    }

    /// The media with their links. Incomplete after an error.
    pub(super) fn media_of_links(
        &mut self,
        file: &File,
        mut media: Vec<(Medium, Range<usize>)>,
        links: &Links,
    ) -> Vec<Medium> {
        let mut stations: HashMap<&str, Vec<u32>> = HashMap::new();
        for (place, medium) in (0u32..).zip(&links.media) {
            if let Some((name, _)) = medium {
                stations.entry(name).or_default().push(place);
            }
        }
        media.retain_mut(|(Medium { name, links: places, .. }, span)| {
            *places = stations.remove(&**name).unwrap_or_default();
            let is_possible = (1..=MOST_STATIONS).contains(&places.len());
            if !is_possible {
                let entry = Entry { section: "medium", name: Some(name), n: None };
                let what = format!("{} links share it; there can be 1 to {MOST_STATIONS}", places.len());
                let fix = format!("write medium = \"{name}\" in the links that share it");
                self.error(span, &entry, "", what, fix);
            }
            is_possible
        });
        self.stations(file, links);
        media.into_iter().map(|(medium, _)| medium).collect()
    }

    /// The kind and settings of a medium. None after an error.
    fn medium(&mut self, entry: &Entry<'_>, written: &file::Medium) -> Option<(&'static Spec, Values)> {
        let kind = &written.kind.text;
        let Some(spec) = MEDIA.iter().copied().find(|spec| spec.kind == kind) else {
            let kinds: Vec<&str> = MEDIA.iter().map(|spec| spec.kind).collect();
            let what = format!("there is no medium of the kind \"{}\"", kind.escape_debug());
            let fix = name_hint(kind, &kinds);
            return self.refuse(&written.kind.span, entry, "kind", what, fix);
        };
        let mut given: Vec<(&str, &str)> = Vec::new();
        if let Some(profile) = &written.profile {
            let known = medium_profiles(spec);
            let Some((_, values)) = known.iter().find(|(name, _)| *name == profile.text) else {
                let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
                let what = format!("there is no profile \"{}\" of {kind}", profile.text.escape_debug());
                let fix =
                    if names.is_empty() { "remove it".into() } else { format!("there are {}", some(&names)) };
                return self.refuse(&profile.span, entry, "profile", what, fix);
            };
            given.extend_from_slice(values);
        }
        let mut wrong = false;
        for (name, text, span) in &written.params {
            let Some(param) = spec.params.iter().find(|param| param.name == *name) else {
                let (what, fix) = no_such_parameter(spec, name);
                self.error(span, entry, spec.key, what, fix);
                wrong = true;
                continue;
            };
            if let Err(error) = param.read(text) {
                self.error(span, entry, name, bare(&error), near(param, text));
                wrong = true;
            }
            given.push((name, text));
        }
        if wrong {
            return None;
        }
        let span = |name: &str| {
            let param = written.params.iter().find(|(param, ..)| *param == name);
            param.map_or(&written.name.span, |(.., span)| span)
        };
        let values = self.accept(&written.name.span, entry, "", Values::read(spec, &given))?;
        if let Err((name, what)) = check_medium(spec, &values) {
            return self.refuse(span(name), entry, name, what, "");
        }
        Some((spec, values))
    }

    /// Checks the links that name a medium.
    fn stations(&mut self, file: &File, links: &Links) {
        let known: Vec<&str> = file.medium.iter().map(|medium| medium.name.text.as_str()).collect();
        let names: HashSet<&str> = known.iter().copied().collect();
        for (place, medium) in links.media.iter().enumerate() {
            let Some((name, span)) = medium else { continue };
            if self.findings.full() {
                return;
            }
            let link = &links.links[place];
            let entry = Entry { section: "link", name: Some(&link.name), n: None };
            if !names.contains(&**name) {
                self.no_such::<()>(&entry, (span, "medium"), name, &known);
            } else if links.profiles[link.profile as usize].value("rate").is_some() {
                let what = "its medium decides its rate";
                self.error(span, &entry, "rate", what, "remove rate, framing and overhead, or medium");
            }
        }
    }

    /// Refuses a change of the rate of a medium's stations. None after an error.
    pub(super) fn no_station(
        &mut self,
        entry: &Entry<'_>,
        texts: &[BlockText],
        (places, links): (&[u32], &Links),
    ) -> Option<()> {
        let station = places.iter().find(|&&place| links.media[place as usize].is_some());
        let rate = texts.iter().find(|text| text.key == "rate");
        let (Some(&station), Some(rate)) = (station, rate) else { return Some(()) };
        let what = format!("the medium of \"{}\" decides its rate", links.links[station as usize].name);
        let medium = links.media[station as usize].as_ref().map_or("", |(name, _)| name);
        let fix = format!("write medium = \"{medium}\" instead of the link, with its rate");
        self.refuse(&rate.span, entry, "rate", what, fix)
    }
}
