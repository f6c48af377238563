//! Section `[[at]]`: changes during the run. Sources have places after those of links, and media after those.

use super::dry_run::DryRun;
use super::event_request::{EventRequest, ObjectKind, Objects, ResolvedEvents, first_places};
use super::links::Links;
use super::stages::rewires;
use super::{Entry, Resolver};
use crate::file::{At, File};

use crate::written::{Name, Written};

/// Most events, after templates.
const MOST_EVENTS: usize = 100_000;

impl Resolver<'_, '_> {
    pub(super) fn events(&mut self, file: &File, links: &Links, others: Objects<'_>) -> ResolvedEvents {
        let mut wanted = Vec::new();
        for written in file.at.iter().filter(|at| at.router.is_none() && !rewires(at)) {
            let entry = Entry { section: "at", name: written.text("time"), n: None };
            for n in self.numbers(&entry, written) {
                let entry = Entry { n, ..entry };
                if wanted.len() == MOST_EVENTS {
                    let what = format!("there are more than {MOST_EVENTS} events");
                    self.error(&written.span, &entry, "", what, "use every and times, or a ramp");
                    return ResolvedEvents::default();
                }
                let Some(event) = self.wanted(entry, written, links, others) else { break };
                wanted.push(event);
            }
        }
        if self.findings.failed() || wanted.is_empty() {
            return ResolvedEvents::default();
        }
        DryRun::new(self, links, others).all(&wanted)
    }

    /// The request of one entry. None after an error.
    fn wanted<'f>(
        &mut self,
        entry: Entry<'f>,
        written: &'f At,
        links: &Links,
        others: Objects<'_>,
    ) -> Option<EventRequest<'f>> {
        let settings = self.row(&entry, written);
        let repeat = settings.as_ref().and_then(|settings| self.repeat(&entry, written, settings));
        let (object, mut places) = self.changing(&entry, written, links, others)?;
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
        Some(EventRequest {
            entry,
            written,
            time: settings.time,
            repeat: repeat?,
            ramp,
            places,
            object,
            texts,
            planned,
        })
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
                ObjectKind::Sources => places.push(
                    first_source
                        + self.place_named(entry, "source", name, sources.iter().map(|own| &*own.name))?,
                ),
                ObjectKind::Media => places.push(
                    first_medium
                        + self.place_named(entry, "medium", name, media.iter().map(|own| &*own.name))?,
                ),
            }
        }
        Some((object, places))
    }

    /// The place of a link, or both of a duplex link.
    fn link_places(&mut self, entry: &Entry<'_>, written: &Written<Name>, links: &Links) -> Option<Vec<u32>> {
        let name = self.term(entry, "link", written)?.0;
        if let Some(&place) = links.names.get(&name) {
            return Some(vec![place]);
        }
        let way = |suffix: &str| links.names.get(format!("{name}{suffix}").as_str()).copied();
        if let (Some(forward), Some(backward)) = (way(".forward"), way(".backward")) {
            return Some(vec![forward, backward]);
        }
        let known: Vec<&str> = links.links.iter().map(|link| &*link.name).collect();
        self.no_such(entry, (&written.span, "link"), &name, &known)
    }
}
