//! Text to sections: TOML syntax, unknown keys, wrong types. Reports as many errors as possible.

use crate::edit::sections_of;
use crate::file::{
    At, AtKeys, BlockText, Direction, DirectionKeys, File, Link, LinkKeys, Medium, Port, PortKeys,
    ProfileFile, ProfileSection, Source, SourceKeys,
};
use crate::finding::{Findings, fix_missing, suggestion};
use crate::link_edit::{implied_kind, implied_removal};
use crate::row::Params;
use crate::settings::ScenarioSettings;
use crate::source::source_keys;
use longwire_block::{Settings as _, Spec};
use longwire_drivers::DRIVERS;
use longwire_link::MEDIA;
use serde::de::DeserializeOwned;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue, ValueDeserializer};

/// The sections of a file.
const SECTIONS: &str = "engine fidelity nesp host port bridge router forwarder link medium path source at";

/// Parameters of the rate block that may also be keys of the link.
pub(crate) const BESIDE_RATE: [&str; 2] = ["framing", "overhead"];

/// The registry's key of source models.
const BACKGROUND: &str = "background";
/// The key of media.
const MEDIUM: &str = "medium";

/// Longest scenario file in bytes.
pub(crate) const LONGEST_FILE: usize = 64 << 20;

type Key<'i> = Spanned<DeString<'i>>;
type Item<'i> = Spanned<DeValue<'i>>;

/// Reads `text`; what can't be read is reported in `findings` and left out.
pub(crate) fn read(text: &str, registry: &[&'static Spec], findings: &mut Findings<'_>) -> File {
    let mut file = File::default();
    if text.len() > LONGEST_FILE {
        let what = format!("the file is longer than {LONGEST_FILE} bytes");
        findings.error(0..0, "", what, "write links of one kind as one entry with a count");
        return file;
    }
    let Some(mut root) = table_of(text, findings) else { return file };
    if let Some((span, kind, command)) = other_kind(root.get_ref(), findings.file()) {
        findings.error(span, "", format!("this is {kind}, not a scenario"), format!("give it to {command}"));
        return file;
    }
    let mut reader = Reader { registry, findings };
    let mut whole = DeTable::new();
    for name in ScenarioSettings::SPEC.params.iter().map(|param| param.name) {
        whole.extend(root.get_mut().remove_entry(name));
    }
    let whole = Spanned::new(root.span(), DeValue::Table(whole));
    file.whole = reader.table("", whole, &[]).unwrap_or_default();
    for (key, item) in root.into_inner() {
        reader.section(&mut file, &key, item);
    }
    file
}

/// Reads the text of a profile; errors are in `findings`.
pub(crate) fn read_profile(
    text: &str,
    registry: &[&'static Spec],
    findings: &mut Findings<'_>,
) -> Option<ProfileFile> {
    let mut root = table_of(text, findings)?;
    let mut reader = Reader { registry, findings };
    let keys = reader.block_keys();
    let blocks = reader.blocks("profile", root.get_mut());
    let [forward, backward] = ["forward", "backward"].map(|way| {
        let Some(mut item) = root.get_mut().remove(way) else { return Some(Vec::new()) };
        let blocks = reader.blocks_in(way, &mut item);
        reader.table::<ProfileSection>(way, item, &keys).map(|ProfileSection {}| blocks)
    });
    let others: Vec<&str> = keys.iter().copied().chain(["forward", "backward"]).collect();
    let item = Spanned::new(root.span(), DeValue::Table(root.into_inner()));
    let named: ProfileFile = reader.table("profile", item, &others)?;
    Some(ProfileFile { blocks, directions: [forward?, backward?], ..named })
}

/// The key at the top level of a file that shows that it is no scenario, what it is, and the command for it.
fn other_kind(root: &DeTable<'_>, file: &str) -> Option<(Range<usize>, &'static str, String)> {
    if ["host", "port", "link"].iter().any(|section| root.contains_key(*section)) {
        return None;
    }
    root.iter().find_map(|(key, _)| {
        let (kind, command) = match key.get_ref().as_ref() {
            "axes" | "scenario" => ("a sweep", format!("longwire sweep run {file}")),
            "walker" | "tle" | "station" => {
                ("a request for a constellation", format!("longwire constellation {file} --output FOLDER"))
            }
            "machine" => ("a list of machines", format!("longwire partition SCENARIO --machines {file}")),
            _ => return None,
        };
        Some((key.span(), kind, command))
    })
}

/// The text as TOML.
fn table_of<'t>(text: &'t str, findings: &mut Findings<'_>) -> Option<Spanned<DeTable<'t>>> {
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let span = error.span().unwrap_or(0..0);
        findings.error(span, "", format!("not TOML: {}", error.message()), fix_syntax(error.message()));
    }
    errors.is_empty().then_some(root)
}

/// The fix of a TOML syntax error.
pub(crate) fn fix_syntax(message: &str) -> &'static str {
    if message.contains("duplicate") {
        "give each key once; several hosts, links and so on are [[host]], [[link]] with two brackets each"
    } else if message.contains("string values must be quoted") || message.contains("unquoted") {
        "write texts in quotes, as in rate = \"10 Mbit/s\""
    } else {
        "write texts in quotes (rate = \"10 Mbit/s\"), lists in brackets, and each key on a line of its own"
    }
}

struct Reader<'r, 'f, 't> {
    registry: &'r [&'static Spec],
    findings: &'f mut Findings<'t>,
}

impl Reader<'_, '_, '_> {
    fn section(&mut self, file: &mut File, key: &Key<'_>, item: Item<'_>) {
        let section: &str = key.get_ref();
        match section {
            "engine" => file.engine = self.table(section, item, &[]),
            "fidelity" => file.fidelity = self.table(section, item, &[]),
            "nesp" => file.nesp = self.table(section, item, &[]),
            "host" => file.host = self.entries(section, item, |r, i| r.table(section, i, &[])),
            "port" => file.port = self.entries(section, item, Self::port),
            "bridge" => file.bridge = self.entries(section, item, |r, i| r.table(section, i, &[])),
            "router" => file.router = self.entries(section, item, |r, i| r.table(section, i, &[])),
            "forwarder" => file.forwarder = self.entries(section, item, |r, i| r.table(section, i, &[])),
            "link" => file.link = self.entries(section, item, Self::link),
            "medium" => file.medium = self.entries(section, item, Self::medium),
            "path" => file.path = self.entries(section, item, |r, i| r.table(section, i, &[])),
            "source" => file.source = self.entries(section, item, Self::source),
            "at" => file.at = self.entries(section, item, Self::at),
            _ => {
                let whole = ScenarioSettings::SPEC.params.iter().map(|param| param.name);
                let known: Vec<&str> = whole.chain(SECTIONS.split(' ')).collect();
                self.unknown(key.span(), "", section, &known);
            }
        }
    }

    /// The entries of a section that is a list of tables.
    fn entries<T>(
        &mut self,
        section: &str,
        item: Item<'_>,
        read: impl Fn(&mut Self, Item<'_>) -> Option<T>,
    ) -> Vec<T> {
        let span = item.span();
        let DeValue::Array(list) = item.into_inner() else {
            let fix = format!("write [[{section}]], with two brackets each");
            self.findings.error(span, section, format!("{section} is a list of entries"), fix);
            return Vec::new();
        };
        list.into_iter().filter_map(|item| read(self, item)).collect()
    }

    /// A table as a `T`; `others` are keys that were taken out before.
    fn table<T: DeserializeOwned>(&mut self, section: &str, item: Item<'_>, others: &[&str]) -> Option<T> {
        let span = item.span();
        let DeValue::Table(mut table) = item.into_inner() else {
            let what = format!("{section} is a table of keys");
            self.findings.error(span, section, what, format!("write [{section}]"));
            return None;
        };
        let label = label(section, &table);
        let mut whole = true;
        loop {
            let copy = Spanned::new(span.clone(), DeValue::Table(table.clone()));
            let error = match T::deserialize(ValueDeserializer::from(copy)) {
                Ok(value) => return whole.then_some(value),
                Err(error) => error,
            };
            let at = error.span().unwrap_or(span.clone());
            let bad =
                table.iter().find(|(key, value)| within(&at, &key.span()) || within(&at, &value.span()));
            let bad = bad.map(|(key, _)| key.get_ref().to_string());
            self.report(&label, bad.as_deref(), &at, error.message(), others, whole);
            whole = false;
            // Without the faulty key, the next error shows.
            match bad {
                Some(key) if !self.findings.full() => table.remove(key.as_str()),
                _ => return None,
            };
        }
    }

    /// Reports a serde error. A missing key is not reported if something was removed from the entry.
    fn report(
        &mut self,
        label: &str,
        key: Option<&str>,
        at: &Range<usize>,
        message: &str,
        others: &[&str],
        whole: bool,
    ) {
        let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
        if message.starts_with("unknown field") {
            let known: Vec<&str> = names[1..].iter().chain(others).copied().collect();
            let label = match key {
                Some(key) if key != names[0] => format!("{label}, {key}"),
                _ => label.into(),
            };
            self.unknown(at.clone(), &label, names[0], &known);
        } else if message.starts_with("missing field") {
            let name = names.first().copied().unwrap_or_default();
            let label = key.map_or_else(|| label.to_string(), |key| format!("{label}, {key}"));
            if whole || key.is_some() {
                self.findings.error(at.clone(), &label, format!("\"{name}\" is missing"), fix_missing(name));
            }
        } else {
            let label = match key {
                Some(key) if label.is_empty() => key.into(),
                Some(key) => format!("{label}, {key}"),
                None => label.into(),
            };
            self.findings.error(at.clone(), &label, plain(message), "");
        }
    }

    fn unknown(&mut self, span: Range<usize>, label: &str, given: &str, known: &[&str]) {
        if self.findings.full() {
            // Only counts further keys: suggestions take time for each.
            return self.findings.error(span, label, String::new(), "");
        }
        let fix = match (&self.keys_with(given, known)[..], suggestion(given, known.iter().copied())) {
            ([], Some(name)) => format!("did you mean \"{name}\"?"),
            ([], None) => format!("there are {}", known.join(", ")),
            ([key], _) => format!("it belongs to {key}: write {key} = {{ {given} = \"…\" }}"),
            ([others @ .., last], _) => {
                let all = others.join(", ");
                format!("it belongs to {all} or {last}: write {last} = {{ {given} = \"…\" }}, for example")
            }
        };
        let what = if label.is_empty() { "section" } else { "key" };
        self.findings.error(span, label, format!("there is no {what} \"{}\"", given.escape_debug()), fix);
    }

    /// The keys of blocks that have a parameter of this name, where all block keys are known.
    fn keys_with(&self, name: &str, known: &[&str]) -> Vec<&'static str> {
        if self.registry.iter().any(|spec| !known.contains(&spec.key)) {
            return Vec::new();
        }
        let has = |spec: &&&Spec| spec.params.iter().any(|param| param.name == name);
        let mut keys: Vec<&'static str> = self.registry.iter().filter(has).map(|spec| spec.key).collect();
        keys.dedup();
        keys
    }

    /// A link: first the registry's keys, then the rest.
    fn link(&mut self, mut item: Item<'_>) -> Option<Link> {
        let span = item.span();
        let keys = self.block_keys();
        let (mut blocks, mut directions) = (Vec::new(), [Some(None), Some(None)]);
        if let DeValue::Table(table) = item.get_mut() {
            let label = label("link", table);
            blocks = self.blocks(&label, table);
            directions = ["forward", "backward"].map(|way| {
                let Some(mut inner) = table.remove(way) else { return Some(None) };
                let label = format!("{label}, {way}");
                let blocks = self.blocks_in(&label, &mut inner);
                let direction: Direction = self.table(&label, inner, &keys)?;
                Some(Some(direction.map(|own| DirectionKeys { blocks, ..own })))
            });
        }
        let link: Link = self.table("link", item, &keys)?;
        let [forward, backward] = directions;
        let (forward, backward) = (forward?, backward?);
        Some(link.map(|link| link.map(|link| LinkKeys { blocks, span, forward, backward, ..link })))
    }

    fn port(&mut self, item: Item<'_>) -> Option<Port> {
        let keys = keys_of(DRIVERS.iter().map(|driver| &driver.spec));
        let (port, params) = self.with_params::<Port>("port", item, &keys)?;
        Some(port.map(|port| PortKeys { params, ..port }))
    }

    /// A medium: first the parameters of all kinds, then the rest.
    fn medium(&mut self, item: Item<'_>) -> Option<Medium> {
        let (medium, params) = self.with_params::<Medium>("medium", item, &keys_of(MEDIA.iter().copied()))?;
        Some(Medium { params, ..medium })
    }

    /// A traffic source: first its changeable settings except the destination, then the rest.
    fn source(&mut self, item: Item<'_>) -> Option<Source> {
        let mut names = source_keys();
        names.retain(|name| !["to", "destination"].contains(name));
        let (source, params) = self.with_params::<Source>("source", item, &names)?;
        Some(source.map(|source| source.map(|source| SourceKeys { params, ..source })))
    }

    /// An entry: first the values of these names as text, then the rest. None after an error.
    fn with_params<T: DeserializeOwned>(
        &mut self,
        section: &str,
        mut item: Item<'_>,
        names: &[&'static str],
    ) -> Option<(T, Params)> {
        let params = match item.get_mut() {
            DeValue::Table(table) => self.taken(&label(section, table), names, table)?,
            _ => Params::new(),
        };
        Some((self.table(section, item, names)?, params))
    }

    /// Takes the values of these names out of a table, as text. None after an error.
    fn taken(&mut self, label: &str, names: &[&'static str], table: &mut DeTable<'_>) -> Option<Params> {
        let mut params = Params::new();
        for &name in names {
            let Some(value) = table.remove(name) else { continue };
            let text = self.text(&format!("{label}, {name}"), value.span(), value.get_ref())?;
            params.push((name, text, value.span()));
        }
        Some(params)
    }

    /// A change: first the registry's keys, then the rest.
    fn at(&mut self, mut item: Item<'_>) -> Option<At> {
        let span = item.span();
        let mut keys = self.block_keys();
        let mut blocks = Vec::new();
        if let DeValue::Table(table) = item.get_mut() {
            let label = label("at", table);
            if let Some(added) = table.get_mut("add")
                && let DeValue::Table(sections) = added.get_ref()
            {
                *added.get_mut() = DeValue::String(sections_of(sections).into());
            }
            let own = if table.contains_key("source") {
                Some((BACKGROUND, source_keys()))
            } else {
                table.contains_key("medium").then(|| (MEDIUM, keys_of(MEDIA.iter().copied())))
            };
            if let Some((key, own)) = own {
                let params = self.taken(&label, &own, table)?.into_iter();
                let params: Vec<_> = params.map(|(name, text, at)| (Some(name.into()), text, at)).collect();
                if !params.is_empty() {
                    blocks.push(BlockText { key: key.into(), kind: None, params, span: span.clone() });
                }
                keys = own;
            } else {
                blocks = self.blocks(&label, table);
            }
        }
        let at: At = self.table("at", item, &keys)?;
        Some(at.map(|at| at.map(|at| AtKeys { blocks, span, ..at })))
    }

    /// The link keys that are not in [`Link`] itself, each once.
    fn block_keys(&self) -> Vec<&'static str> {
        each_once(self.registry.iter().map(|spec| spec.key).chain(BESIDE_RATE))
    }

    /// Takes the keys of the registry out of a table.
    fn blocks(&mut self, label: &str, table: &mut DeTable<'_>) -> Vec<BlockText> {
        let keys = self.block_keys();
        let found = keys.into_iter().filter_map(|key| Some((key, table.remove(key)?)));
        found.filter_map(|(key, item)| self.block(label, key, item)).collect()
    }

    /// Takes the keys of the registry out of a value, if it is a table.
    fn blocks_in(&mut self, label: &str, item: &mut Item<'_>) -> Vec<BlockText> {
        match item.get_mut() {
            DeValue::Table(table) => self.blocks(label, table),
            _ => Vec::new(),
        }
    }

    fn block(&mut self, label: &str, key: &str, item: Item<'_>) -> Option<BlockText> {
        let span = item.span();
        let mut block = BlockText { key: key.into(), kind: None, params: Vec::new(), span: span.clone() };
        let field = format!("{label}, {key}");
        match item.into_inner() {
            DeValue::Table(table) => {
                for (name, item) in table {
                    let at = item.span();
                    let text =
                        self.text(&format!("{field}.{}", name.get_ref()), at.clone(), item.get_ref())?;
                    if name.get_ref() == "kind" {
                        block.kind = Some((text, at));
                    } else {
                        block.params.push((Some(name.into_inner().into_owned()), text, at));
                    }
                }
            }
            scalar => {
                let text = self.text(&field, span.clone(), &scalar)?;
                match implied_removal(key, &text).or_else(|| implied_kind(self.registry, key, &text)) {
                    Some(spec) => block.kind = Some((spec.kind.into(), span)),
                    None => block.params.push((None, text, span)),
                }
            }
        }
        Some(block)
    }

    /// A string or number as text; an array of strings as lines.
    fn text(&mut self, field: &str, span: Range<usize>, value: &DeValue<'_>) -> Option<String> {
        match value {
            DeValue::String(text) => return Some(text.to_string()),
            DeValue::Integer(number) if number.radix() == 10 => return Some(number.as_str().into()),
            DeValue::Float(number) => return Some(number.as_str().into()),
            DeValue::Array(list) if list.iter().all(|item| item.get_ref().as_str().is_some()) => {
                let lines: Vec<&str> = list.iter().filter_map(|item| item.get_ref().as_str()).collect();
                return Some(lines.join("\n"));
            }
            _ => {}
        }
        let fix = "write a text, a decimal number, or a table such as { kind = \"…\" }";
        let kind = value.type_str();
        let article = if kind.starts_with(['a', 'i']) { "an" } else { "a" };
        self.findings.error(span, field, format!("{article} {kind} is not allowed here"), fix);
        None
    }
}

/// The parameters of all these rows, each once.
fn keys_of(rows: impl Iterator<Item = &'static Spec>) -> Vec<&'static str> {
    each_once(rows.flat_map(|spec| spec.params).map(|param| param.name))
}

fn each_once(keys: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    let mut once: Vec<&'static str> = Vec::new();
    for key in keys {
        if !once.contains(&key) {
            once.push(key);
        }
    }
    once
}

/// An entry's name in errors: its section, and its name or ends.
fn label(section: &str, table: &DeTable<'_>) -> String {
    let text = |key: &str| table.get(key).and_then(|item| item.get_ref().as_str()).map(str::escape_debug);
    if let ("at", Some(time)) = (section, text("time")) {
        return format!("at \"{time}\"");
    }
    match (text("name"), text("from"), text("to")) {
        (Some(name), ..) => format!("{section} \"{name}\""),
        (None, Some(from), Some(to)) => format!("{section} \"{from}-{to}\""),
        _ => section.into(),
    }
}

fn within(inner: &Range<usize>, outer: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// serde's message without its quotes.
fn plain(message: &str) -> String {
    message.replace('`', "").replace("invalid type: ", "wrong type: ").trim_end().into()
}
