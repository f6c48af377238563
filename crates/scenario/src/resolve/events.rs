//! Section `[[at]]`: changes during the run. Sources have places after those of links, and media after those.

use super::dry_run::DryRun;
use super::event_request::{EventRequest, ObjectKind, Objects, ResolvedEvents, first_places};
use super::links::Links;
use super::stages::rewires;
use super::{Entry, Resolver};
use crate::event::over;
use crate::file::{At, File};
use crate::plan::{Plan, Source};
use crate::settings::AtSettings;
use crate::written::{Name, Written};

/// Most events, after templates.
const MOST_EVENTS: usize = 100_000;

impl Resolver<'_, '_> {
    pub(super) fn events(&mut self, file: &File, links: &Links, others: Objects<'_>) -> ResolvedEvents {
        let mut wanted = Vec::new();
        let entries = file.at.iter().enumerate();
        for (index, written) in entries.filter(|(_, at)| at.router.is_none() && !rewires(at)) {
            let mut named = 0;
            let entry = Entry { section: "at", name: written.text("time"), n: None };
            for n in self.numbers(&entry, written) {
                let entry = Entry { n, ..entry };
                if wanted.len() == MOST_EVENTS {
                    let what = format!("there are more than {MOST_EVENTS} events");
                    self.error(&written.span, &entry, "", what, "use every and times, or a ramp");
                    return ResolvedEvents::default();
                }
                let Some(event) = self.wanted(entry, written, links, others) else { break };
                wanted.extend(event);
                named += [&written.link, &written.source, &written.medium]
                    .iter()
                    .map(|names| names.as_ref().map_or(0, |names| names.0.len()))
                    .sum::<usize>();
            }
            self.leave_out((index, written), named);
        }
        if self.findings.failed() || wanted.is_empty() {
            return ResolvedEvents::default();
        }
        DryRun::new(self, links, others).all(&wanted)
    }

    /// The request of one entry; none if its objects are gone, and it is over. None after an error.
    fn wanted<'f>(
        &mut self,
        entry: Entry<'f>,
        written: &'f At,
        links: &Links,
        others: Objects<'_>,
    ) -> Option<Option<EventRequest<'f>>> {
        let settings: Option<AtSettings> = self.row(&entry, written);
        let repeat = settings.as_ref().and_then(|settings| self.repeat(&entry, written, settings));
        let gone_before = self.gone.len();
        let (object, mut places) = self.changing(&entry, written, links, others)?;
        if self.gone.len() > gone_before {
            let AtSettings { time, ramp, .. } = *settings.as_ref()?;
            self.check_over(&entry, object.word(), over(time, repeat?, ramp))?;
            if places.is_empty() {
                return Some(None);
            }
        }
        let texts = self.beside_merged(&entry, &written.blocks.iter().collect::<Vec<_>>())?;
        if texts.is_empty() {
            let fix = format!("add settings of a {}, such as rate = \"1 Mbit/s\"", object.word());
            return self.refuse(&written.span, &entry, "", "nothing changes", fix);
        }
        self.no_station(&entry, &texts, (&places, links))?;
        places.sort_unstable();
        places.dedup();
        let settings = settings?;
        let ramp = self.ramp(&entry, (written, &settings), places.len() as u64)?;
        let mut profiles: Vec<u32> = match texts.iter().any(|text| text.key == "filter") {
            false => Vec::new(),
            true => places.iter().map(|&place| links.links[place as usize].profile).collect(),
        };
        profiles.sort_unstable();
        profiles.dedup();
        let planned =
            profiles.into_iter().map(|profile| links.profiles[profile as usize].blocks.clone()).collect();
        let (time, repeat) = (settings.time, repeat?);
        Some(Some(EventRequest { entry, written, time, repeat, ramp, places, object, texts, planned }))
    }

    /// The kind of object that an entry changes, and the places.
    fn changing(
        &mut self,
        entry: &Entry<'_>,
        written: &At,
        links: &Links,
        (sources, media, _): Objects<'_>,
    ) -> Option<(ObjectKind, Vec<u32>)> {
        let each = [
            (ObjectKind::Links, &written.link),
            (ObjectKind::Sources, &written.source),
            (ObjectKind::Media, &written.medium),
        ];
        let given = || each.iter().filter_map(|(object, names)| Some((*object, names.as_ref()?)));
        if let [_, (second, names), ..] = &given().collect::<Vec<_>>()[..] {
            let span = names.0.first().map_or(&written.span, |name| &name.span);
            let words: Vec<_> = given().map(|(object, _)| format!("{}s", object.word())).collect();
            let what = format!("it names {}", words.join(" and "));
            return self.refuse(span, entry, second.word(), what, "write an entry for each");
        }
        let Some((object, names)) = given().next().filter(|(_, names)| !names.0.is_empty()) else {
            // For keys of routers, an error was reported.
            if super::router_events::only_of_routers(written).is_none() {
                let fix =
                    "add link = \"…\", source = \"…\" or medium = \"…\" with a name, or a list of names";
                self.error(&written.span, entry, "link", "it names no link, no source and no medium", fix);
            }
            return None;
        };
        let mut places = Vec::new();
        let (first_source, first_medium) = first_places(links, sources);
        for name in &names.0 {
            match object {
                ObjectKind::Links => places.extend(self.link_places(entry, name, links)?),
                ObjectKind::Sources => {
                    let place = self.source_place(entry, name, sources)?;
                    places.extend(place.map(|place| first_source + place));
                }
                ObjectKind::Media => places.push(
                    first_medium
                        + self.place_named(entry, "medium", name, media.iter().map(|own| &*own.name))?,
                ),
            }
        }
        Some((object, places))
    }

    /// The place of a source among others; none if it is gone. None after an error.
    fn source_place(
        &mut self,
        entry: &Entry<'_>,
        written: &Written<Name>,
        sources: &[Source],
    ) -> Option<Option<u32>> {
        let name = self.term(entry, "source", written)?.0;
        let is_it = |source: &Source| *source.name == *name;
        let was_there = |plan: &Plan| plan.sources.iter().any(is_it);
        if !sources.iter().any(is_it) && self.is_gone(written, &name, was_there) {
            return Some(None);
        }
        self.place_named(entry, "source", written, sources.iter().map(|own| &*own.name)).map(Some)
    }

    /// The place of a link, or both of a duplex link; none if it is gone. None after an error.
    fn link_places(&mut self, entry: &Entry<'_>, written: &Written<Name>, links: &Links) -> Option<Vec<u32>> {
        let name = self.term(entry, "link", written)?.0;
        if let Some(&place) = links.names.get(&name) {
            return Some(vec![place]);
        }
        let way = |suffix: &str| links.names.get(format!("{name}{suffix}").as_str()).copied();
        if let (Some(forward), Some(backward)) = (way(".forward"), way(".backward")) {
            return Some(vec![forward, backward]);
        }
        let is_it = |link: &str| link == &*name || link.strip_suffix(".forward") == Some(&*name);
        if self.is_gone(written, &name, |plan| plan.links.iter().any(|link| is_it(&link.name))) {
            return Some(Vec::new());
        }
        let known: Vec<&str> = links.links.iter().map(|link| &*link.name).collect();
        self.no_such(entry, (&written.span, "link"), &name, &known)
    }
}
