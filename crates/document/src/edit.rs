//! Edits of a scenario's text: sections are appended or cut out, all else stays as written.

use crate::quoting::{quoted, quoted_key};
use std::ops::Range;
use thiserror::Error;
use toml::de::{DeTable, DeValue};

/// Sections whose entries have names and can be cut out.
const NAMED: [&str; 6] = ["link", "host", "port", "bridge", "router", "source"];
/// Programs come and go with their routers.
const OF_ROUTERS: &str = "forwarder";

/// Why a section can't be added or removed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EditError {
    /// The text is not TOML.
    #[error("the scenario's text is not TOML any more")]
    NotToml,
    /// There is no such section.
    #[error("no [[link]], [[host]], [[port]], [[bridge]], [[router]] or [[source]] is called \"{0}\"")]
    Unknown(String),
    /// A section with a count makes several objects.
    #[error(
        "\"{name}\" is one of those that a single [[{section}]] with a count makes: write a section for \
         each, and apply that"
    )]
    Counted {
        /// The name.
        name: String,
        /// The section's word.
        section: &'static str,
    },
    /// One direction of a duplex link.
    #[error("\"{name}\" is one direction of a duplex link: remove \"{whole}\"")]
    Direction {
        /// The name.
        name: String,
        /// The name of the whole link.
        whole: String,
    },
    /// The entries are written as an inline list.
    #[error("\"{0}\" is written in a list in one line: write it as a section of its own, and apply that")]
    Inline(String),
    /// What is to be added begins with keys, which would join the last section of the scenario.
    #[error("\"{0}\" belongs to no section: begin with one, such as [[link]]")]
    NoSection(String),
    /// What is to be removed would be there again, and would not begin anew.
    #[error("\"{0}\" is removed and added at one instant, and would stay as it is: do one after the other")]
    Again(String),
}

/// The text without the entries named in `remove`, and with the sections `add` appended.
///
/// # Errors
/// If there is no entry of a name, its section makes several objects, `add` has keys of another section than
/// its own, or adds again what is removed.
pub fn edited(text: &str, add: &str, remove: &[String]) -> Result<String, EditError> {
    let first = add.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    if let Some(line) = first.filter(|line| !line.starts_with('[')) {
        return Err(EditError::NoSection(line.to_owned()));
    }
    // Faults of the syntax are reported when the whole is read.
    let (added, errors) = DeTable::parse_recoverable(add);
    let added = added.get_ref();
    // A table without an entry of its own would join the last entry of the scenario.
    let is_table = |word: &&&str| added.get(**word).is_some_and(|value| value.get_ref().is_table());
    let alone = NAMED.iter().chain([&OF_ROUTERS]).find(is_table);
    if let Some(word) = alone.filter(|_| errors.is_empty()) {
        return Err(EditError::NoSection(format!("[{word}]")));
    }
    let mut text = text.to_owned();
    for name in remove {
        let mut ends = ports_of_router(&text, name);
        let (cut, section) = without_section(&text, name, &NAMED)?;
        if is_again(&text, added, (section, name)) {
            return Err(EditError::Again(name.clone()));
        }
        text = cut;
        match section {
            "link" | "source" => continue,
            "router" => text = without_forwarders(text, name)?,
            _ => ends = vec![name.clone()],
        }
        // The links and sources of a host, port or bridge go with it, and those of a router's own ports with
        // that.
        for end in ends {
            for section in ["link", "source"] {
                while let Some(name) = joined_to(&text, section, &end) {
                    text = without_section(&text, &name, &[section])?.0;
                }
            }
        }
    }
    Ok(if add.trim().is_empty() { text } else { with_sections(&text, add) })
}

/// Whether `added` has the entry of this section and name, too. A link with other ends is another link.
fn is_again(text: &str, added: &DeTable<'_>, (section, name): (&str, &str)) -> bool {
    let (root, _) = DeTable::parse_recoverable(text);
    let is_it = |entry: &&DeTable<'_>| EntryName::of(entry).whole.as_deref() == Some(name);
    let Some(there) = entries(root.get_ref(), section).find(is_it) else { return false };
    let ends = |entry: &DeTable<'_>| {
        let ends = ends_of(entry).into_iter().map(str::to_owned).collect::<Vec<_>>();
        (EntryName::of(entry).duplex, ends)
    };
    entries(added, section).filter(is_it).any(|entry| section != "link" || ends(entry) == ends(there))
}

/// The names that [`edited`] can remove: of sections that make one object each, and with which no others go.
pub fn removable(text: &str) -> Vec<String> {
    let (root, _) = DeTable::parse_recoverable(text);
    let is_single = |section: &str, index: usize, entry: &DeTable<'_>| {
        !entry.contains_key("count") && header(text, section, index).is_some()
    };
    // The ends of links and sources that can't go with them.
    let mut bound: Vec<&str> = Vec::new();
    for section in ["link", "source"] {
        let all = entries(root.get_ref(), section).enumerate();
        let stay = all.filter(|(index, entry)| !is_single(section, *index, entry));
        bound.extend(stay.flat_map(|(_, entry)| ends_of(entry)));
    }
    let is_free = |section: &str, name: &str| match section {
        "link" | "source" => true,
        "router" => !ports_of_router(text, name).iter().any(|port| bound.contains(&&**port)),
        _ => !bound.contains(&name),
    };
    let mut names = Vec::new();
    for section in NAMED {
        let all = entries(root.get_ref(), section).enumerate();
        let single = all.filter(|(index, entry)| is_single(section, *index, entry));
        let called = single.filter_map(|(_, entry)| EntryName::of(entry).whole);
        names.extend(called.filter(|name| is_free(section, name)));
    }
    names
}

/// A table of sections as TOML text: by section, the keys of one entry or of several.
pub fn sections_of(sections: &DeTable<'_>) -> String {
    let mut text = String::new();
    for (word, entries) in sections {
        let entries: Vec<_> = match entries.get_ref() {
            DeValue::Array(list) => list.iter().collect(),
            _ => vec![entries],
        };
        for entry in entries {
            text += &format!("[[{}]]\n", quoted_key(word.get_ref()));
            match entry.get_ref() {
                DeValue::Table(keys) => {
                    let lines = keys.iter().map(|(key, value)| {
                        format!("{} = {}\n", quoted_key(key.get_ref()), written(value.get_ref()))
                    });
                    text.extend(lines);
                }
                // Reading the text reports the error.
                other => text += &format!("{}\n", written(other)),
            }
        }
    }
    text
}

/// A value on one line.
fn written(value: &DeValue<'_>) -> String {
    let each = |list: Vec<String>| list.join(", ");
    match value {
        DeValue::String(text) => quoted(text),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(is) => is.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Array(list) => {
            format!("[{}]", each(list.iter().map(|item| written(item.get_ref())).collect()))
        }
        DeValue::Table(table) => {
            let pair = |(key, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
                let key: &toml::de::DeString<'_> = key.get_ref();
                format!("{} = {}", quoted_key(key), written(value.get_ref()))
            };
            format!("{{ {} }}", each(table.iter().map(pair).collect()))
        }
    }
}

/// The text with `sections` appended.
fn with_sections(text: &str, sections: &str) -> String {
    let gap = if text.is_empty() || text.ends_with("\n\n") {
        ""
    } else if text.ends_with('\n') {
        "\n"
    } else {
        "\n\n"
    };
    let end = if sections.ends_with('\n') { "" } else { "\n" };
    format!("{text}{gap}{sections}{end}")
}

/// The text without the section of this name, and that section's kind: the first of these kinds that has one.
/// A link without a name is called by its ends.
///
/// # Errors
/// If there is none, or its section makes several objects.
fn without_section(
    text: &str,
    name: &str,
    kinds: &[&'static str],
) -> Result<(String, &'static str), EditError> {
    let (cut, section) = section_called(text, name, kinds)?;
    Ok((without_lines(text, cut), section))
}

/// The text without these lines, and without what belongs to them.
pub fn without_lines(text: &str, cut: Range<usize>) -> String {
    // Comments directly above belong to it.
    let mut begin = cut.start;
    let above = |begin: usize| {
        let line = text[..begin].strip_suffix('\n')?;
        let start = line.rfind('\n').map_or(0, |at| at + 1);
        Some((start, line[start..].trim()))
    };
    while let Some((start, line)) = above(begin)
        && line.starts_with('#')
    {
        begin = start;
    }
    // The last section is not followed by an empty line.
    if let (Some((start, "")), true) = (above(begin), cut.end == text.len()) {
        begin = start;
    }
    format!("{}{}", &text[..begin], &text[cut.end..])
}

/// The names of the own ports of the router of this name: those that are neither hosts nor declared ports.
fn ports_of_router(text: &str, name: &str) -> Vec<String> {
    let (root, _) = DeTable::parse_recoverable(text);
    let is_declared = |port: &&str| {
        let mut all = ["host", "port"].iter().flat_map(|section| entries(root.get_ref(), section));
        all.any(|entry| text_of(entry, "name") == Some(*port))
    };
    let mut routers = entries(root.get_ref(), "router");
    let router = routers.find(|router| text_of(router, "name") == Some(name));
    let ports = router.and_then(|router| router.get("ports")?.get_ref().as_array());
    let ports = ports.into_iter().flat_map(|ports| ports.iter());
    let names = ports.filter_map(|port| text_of(port.get_ref().as_table()?, "port"));
    names.filter(|port| !is_declared(port)).map(str::to_owned).collect()
}

/// The text without the programs of the router of this name.
fn without_forwarders(mut text: String, name: &str) -> Result<String, EditError> {
    while let Some(at) = forwarder_of(&text, name) {
        let lines = header(&text, OF_ROUTERS, at).ok_or_else(|| EditError::Inline(OF_ROUTERS.into()))?;
        text = without_lines(&text, lines);
    }
    Ok(text)
}

/// The index of the first program of a router.
fn forwarder_of(text: &str, router: &str) -> Option<usize> {
    let (root, _) = DeTable::parse_recoverable(text);
    entries(root.get_ref(), OF_ROUTERS).position(|entry| text_of(entry, "router") == Some(router))
}

/// The entries of a section.
fn entries<'t, 'd>(root: &'t DeTable<'d>, section: &str) -> impl Iterator<Item = &'t DeTable<'d>> {
    let list = root.get(section).and_then(|list| list.get_ref().as_array());
    list.into_iter().flat_map(|list| list.iter()).filter_map(|entry| entry.get_ref().as_table())
}

fn text_of<'t>(table: &'t DeTable<'_>, key: &str) -> Option<&'t str> {
    table.get(key)?.get_ref().as_str()
}

/// The name of the first link or source that begins or ends at `end`.
fn joined_to(text: &str, section: &str, end: &str) -> Option<String> {
    let (root, _) = DeTable::parse_recoverable(text);
    let mut joined = entries(root.get_ref(), section).filter(|entry| ends_of(entry).contains(&end));
    joined.find_map(|entry| EntryName::of(entry).whole)
}

/// The names between which a link or source is.
fn ends_of<'t>(table: &'t DeTable<'_>) -> Vec<&'t str> {
    let ends = ["from", "to", "between"].iter().filter_map(|key| table.get(*key));
    let each = ends.flat_map(|value| match value.get_ref() {
        DeValue::Array(list) => list.iter().map(toml::Spanned::get_ref).collect(),
        one => vec![one],
    });
    each.filter_map(DeValue::as_str).collect()
}

/// The section's lines: from its header to the next that is not one of its subtables.
fn section_called(
    text: &str,
    name: &str,
    kinds: &[&'static str],
) -> Result<(Range<usize>, &'static str), EditError> {
    let (root, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(EditError::NotToml);
    }
    // Its name may only begin like those of a count.
    let mut counted = None;
    for &section in kinds {
        let entries = root.get_ref().get(section).and_then(|entries| entries.get_ref().as_array());
        for (index, entry) in entries.into_iter().flat_map(|entries| entries.iter()).enumerate() {
            let Some(table) = entry.get_ref().as_table() else { continue };
            let called = EntryName::of(table);
            if called.whole.as_deref() == Some(name) {
                if table.contains_key("count") {
                    return Err(EditError::Counted { name: name.into(), section });
                }
                let lines = header(text, section, index).ok_or_else(|| EditError::Inline(name.into()))?;
                return Ok((lines, section));
            }
            if let Some(whole) = called.whole.filter(|_| called.duplex)
                && [".forward", ".backward"].iter().any(|way| name.strip_suffix(way) == Some(&*whole))
            {
                return Err(EditError::Direction { name: name.into(), whole });
            }
            let before_number = called.template.as_deref().and_then(|name| name.split('{').next());
            if table.contains_key("count")
                && let Some(beginning) = before_number
                && name.starts_with(beginning)
            {
                counted = counted.or(Some(EditError::Counted { name: name.into(), section }));
            }
        }
    }
    Err(counted.unwrap_or_else(|| EditError::Unknown(name.into())))
}

/// The name of an entry.
struct EntryName {
    /// Its name, or its ends as `a-b`.
    whole: Option<String>,
    duplex: bool,
    template: Option<String>,
}

impl EntryName {
    fn of(table: &DeTable<'_>) -> Self {
        let text = |key: &str| text_of(table, key).map(str::to_owned);
        let between = table.get("between").and_then(|between| between.get_ref().as_array());
        let between = between
            .map(|ends| ends.iter().filter_map(|end| end.get_ref().as_str()).collect::<Vec<_>>().join("-"));
        let (name, duplex) = (text("name"), between.is_some());
        let ends = || Some(format!("{}-{}", text("from")?, text("to")?));
        Self { whole: name.clone().or(between).or_else(ends), duplex, template: name }
    }
}

/// The lines of the section's entry with this index, without comments above the next section's header.
pub fn header(text: &str, section: &str, index: usize) -> Option<Range<usize>> {
    let mut begin = None;
    let strings = long_strings(text);
    let (mut seen, mut at) = (0, 0);
    // Where the comments begin that follow the last line of another kind.
    let mut comments = None;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_start();
        // A string may have the lines of sections, too.
        if strings.iter().any(|string| string.start < at && at < string.end) {
            at += line.len();
            continue;
        }
        if let Some(key) = key_of(trimmed) {
            let own = key.strip_prefix(section).is_some_and(|rest| rest.starts_with('.'));
            if begin.is_some() && !own {
                return begin.map(|begin| begin..comments.unwrap_or(at));
            }
            if trimmed.starts_with("[[") && key == section {
                if seen == index {
                    begin = Some(at);
                }
                seen += 1;
            }
        }
        if trimmed.starts_with('#') {
            comments = comments.or(Some(at));
        } else if !trimmed.is_empty() {
            comments = None;
        }
        at += line.len();
    }
    begin.map(|begin| begin..at)
}

/// Where strings of several lines are.
fn long_strings(text: &str) -> Vec<Range<usize>> {
    let (root, _) = DeTable::parse_recoverable(text);
    let mut waiting: Vec<&toml::Spanned<DeValue<'_>>> = root.get_ref().values().collect();
    let mut found = Vec::new();
    while let Some(value) = waiting.pop() {
        match value.get_ref() {
            DeValue::Table(table) => waiting.extend(table.values()),
            DeValue::Array(list) => waiting.extend(list.iter()),
            DeValue::String(_) if text[value.span()].contains('\n') => found.push(value.span()),
            _ => {}
        }
    }
    found
}

/// The key that a header line names.
fn key_of(line: &str) -> Option<&str> {
    let entry = line.strip_prefix("[[");
    let inside = entry.or_else(|| line.strip_prefix('['))?;
    let key = inside.split(']').next()?.trim();
    let key = if entry.is_some() { key.trim_matches(['"', '\'']) } else { key };
    // A line of nested arrays also begins with brackets.
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_. ".contains(c);
    (!key.is_empty() && key.chars().all(plain) && inside.contains(']')).then_some(key)
}

/// The text with this seed, and all else on its lines.
///
/// # Errors
/// If the text is not TOML.
pub fn with_seed(text: &str, seed: u64) -> Result<String, EditError> {
    let (root, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(EditError::NotToml);
    }
    if let Some(value) = root.get_ref().get("seed") {
        let Range { start, end } = value.span();
        return Ok(format!("{}{seed}{}", &text[..start], &text[end..]));
    }
    // Before a comment or an empty line there is room for it.
    let gap = if text.starts_with(['#', '\n']) { ' ' } else { '\n' };
    Ok(format!("seed = {seed}{gap}{text}"))
}

/// The sections of two scenarios that differ, apart from links, hosts, ports, bridges, sources, and routers
/// with their programs.
pub fn changed_sections(before: &str, after: &str) -> Vec<String> {
    let [before, after] = [before, after].map(|text| text.parse::<toml::Table>().unwrap_or_default());
    let mut keys: Vec<&String> = before.keys().chain(after.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    let comes_and_goes = |key: &str| NAMED.contains(&key) || key == OF_ROUTERS;
    let differs = |key: &&&String| !comes_and_goes(key) && before.get(**key) != after.get(**key);
    keys.iter().filter(differs).map(|key| (*key).clone()).collect()
}

/// The events of a scenario that add or remove something.
pub fn staged_sections(text: &str) -> Vec<toml::Value> {
    let table = text.parse::<toml::Table>().unwrap_or_default();
    let all = table.get("at").and_then(toml::Value::as_array).cloned().unwrap_or_default();
    all.into_iter().filter(|at| ["add", "remove"].iter().any(|key| at.get(key).is_some())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "seed = 7 # seven\n\n[[host]]\nname = \"a\"\n\n# The way out.\n[[link]]\n\
        name = \"up\"\nbetween = [\"a\", \"b\"]\n[link.forward]\nrate = \"1 Mbit/s\"\n\n\
        [[link]]\nfrom = \"a\"\nto = \"c\"\n\n\
        [[link]]\nname = \"dsl{n}\"\ncount = 3\nfrom = \"a\"\nto = \"b\"\n\n[engine]\nworkers = 1\n";

    #[test]
    fn sections_are_cut_out_and_nothing_else() {
        let without = edited(TEXT, "", &["up".into()]).unwrap();
        assert!(!without.contains("way out") && !without.contains("1 Mbit/s"), "{without}");
        assert!(
            without.contains("# seven") && without.contains("[engine]") && without.contains("to = \"c\"")
        );
        let neither = edited(&without, "", &["a-c".into()]).unwrap();
        assert!(!neither.contains("to = \"c\"") && neither.contains("dsl{n}"), "{neither}");
        assert!(changed_sections(TEXT, &neither).is_empty());
        let back = edited(&neither, "[[link]]\nname = \"x\"\n", &[]).unwrap();
        assert!(back.ends_with("workers = 1\n\n[[link]]\nname = \"x\"\n"), "{back}");
        assert_eq!(changed_sections(TEXT, &TEXT.replace("seed = 7", "seed = 8")), ["seed"]);
        let keys = edited(TEXT, "# One more.\nworkers = 2\n[[link]]\nname = \"x\"\n", &[]);
        assert_eq!(keys, Err(EditError::NoSection("workers = 2".into())));
        // These would be keys of the last link.
        let keys = edited(TEXT, "[[host]]\nname = \"b\"\n[link.queue]\nkind = \"red\"\n", &[]);
        assert_eq!(keys, Err(EditError::NoSection("[link]".into())));
    }

    /// What is kept has the settings that it has: those of its new section would be ignored.
    #[test]
    fn nothing_is_removed_and_added_at_one_instant() {
        let again = |name: &str, add: &str| edited(TEXT, add, &[name.into()]);
        let up = |ends: &str| format!("[[link]]\nname = \"up\"\n{ends}\nrate = \"2 Mbit/s\"\n");
        assert_eq!(again("up", &up("between = [\"a\", \"b\"]")), Err(EditError::Again("up".into())));
        let unnamed = "[[link]]\nfrom = \"a\"\nto = \"c\"\nrate = \"2 Mbit/s\"\n";
        assert_eq!(again("a-c", unnamed), Err(EditError::Again("a-c".into())));
        // Links with other ends are others.
        for ends in ["between = [\"b\", \"a\"]", "from = \"a\"\nto = \"b\""] {
            let moved = again("up", &up(ends)).unwrap();
            assert!(moved.contains("2 Mbit/s") && !moved.contains("1 Mbit/s"), "{moved}");
        }
        let host = "[[host]]\nname = \"x\"\nmtu = 1400\n";
        let is_again = |text: &str| edited(text, host, &["x".into()]) == Err(EditError::Again("x".into()));
        assert!(is_again("[[host]]\nname = \"x\"\n") && !is_again("[[port]]\nname = \"x\"\n"));
    }

    #[test]
    fn a_name_that_begins_like_those_of_a_count_is_found() {
        let text = "[[host]]\nname = \"h{n}\"\ncount = 2\n\n[[link]]\nname = \"up{n}\"\ncount = 2\n\n\
            [[host]]\nname = \"hub\"\n\n[[link]]\nname = \"uplink\"\nfrom = \"hub\"\nto = \"h1\"\n";
        let without = edited(text, "", &["hub".into()]).unwrap();
        assert!(!without.contains("hub") && without.ends_with("name = \"up{n}\"\ncount = 2\n"), "{without}");
        assert!(edited(text, "", &["h1".into()]).unwrap_err().to_string().contains("with a count"));
    }

    #[test]
    fn sources_go_by_name_and_with_their_ends() {
        let text = "[[host]]\nname = \"a\"\n\n[[host]]\nname = \"b\"\n\n\
            [[source]]\nfrom = \"a\"\nto = \"b\"\n\n\
            [[source]]\nname = \"video\"\nfrom = \"b\"\nto = \"c\"\n";
        let without = edited(text, "", &["video".into()]).unwrap();
        assert!(!without.contains("video") && without.contains("from = \"a\""), "{without}");
        assert!(changed_sections(text, &without).is_empty());
        assert_eq!(edited(text, "", &["b".into()]).unwrap(), "[[host]]\nname = \"a\"\n");
        assert!(!edited(text, "", &["a-b".into()]).unwrap().contains("from = \"a\""));
        // A link of other ends may have the name of a source.
        let link = "\n[[link]]\nname = \"a-b\"\nbetween = [\"x\", \"y\"]\n";
        let without = edited(&format!("{text}{link}"), "", &["b".into()]).unwrap();
        assert_eq!(without, format!("[[host]]\nname = \"a\"\n{link}"));
    }

    #[test]
    fn a_seed_is_replaced_or_put_in_front() {
        assert_eq!(with_seed(TEXT, 8).unwrap(), TEXT.replace("seed = 7 #", "seed = 8 #"));
        let second = "# Two.\n[engine]\n";
        assert_eq!(with_seed(second, 8).unwrap(), "seed = 8 # Two.\n[engine]\n");
        assert_eq!(with_seed("[engine]\n", 8).unwrap(), "seed = 8\n[engine]\n");
        assert_eq!(with_seed("\n[engine]\nseed = 1\n", 8).unwrap(), "seed = 8 \n[engine]\nseed = 1\n");
        assert_eq!(with_seed("seed = \"3\"\n", 8).unwrap(), "seed = 8\n");
        assert_eq!(with_seed("[[", 8), Err(EditError::NotToml));
    }

    #[test]
    fn a_router_goes_with_its_programs_and_the_links_of_its_own_ports() {
        let text = "[[host]]\nname = \"a\"\n\n[[router]]\nname = \"r\"\n\
            ports = [{ port = \"a\" }, { port = \"up\" }]\n[router.police]\nerrors = 5\n\n\
            [[link]]\nname = \"one\"\nbetween = [\"up\", \"x\"]\n\n\
            [[forwarder]]\nrouter = \"s\"\nname = \"stays\"\n\n\
            [[forwarder]]\nrouter = \"r\"\nname = \"goes\"\n\n\
            [[link]]\nname = \"other\"\nbetween = [\"a\", \"x\"]\n";
        let without = edited(text, "", &["r".into()]).unwrap();
        let left = "[[host]]\nname = \"a\"\n\n[[forwarder]]\nrouter = \"s\"\nname = \"stays\"\n\n\
            [[link]]\nname = \"other\"\nbetween = [\"a\", \"x\"]\n";
        assert_eq!(without, left);
        assert!(changed_sections(text, &without).is_empty());
        // A section's name may have quotes.
        let quoted = "[[\"host\"]]\nname = \"a\"\n\n[[host]]\nname = \"b\"\n\n[['host']]\nname = \"c\"\n";
        let without = edited(quoted, "", &["b".into()]).unwrap();
        assert_eq!(without, "[[\"host\"]]\nname = \"a\"\n\n[['host']]\nname = \"c\"\n");
        // Sections in a string are not the scenario's.
        let staged = "[[at]]\nadd = '''\n[[router]]\nname = \"r\"\n'''\n\n[[router]]\nname = \"r\"\n";
        let without = edited(staged, "", &["r".into()]).unwrap();
        assert_eq!(without, "[[at]]\nadd = '''\n[[router]]\nname = \"r\"\n'''\n");
        let list = "forwarder = [{ router = \"r\" }]\n[[router]]\nname = \"r\"\n";
        assert_eq!(edited(list, "", &["r".into()]), Err(EditError::Inline("forwarder".into())));
    }

    #[test]
    fn what_is_called_removable_can_be_removed() {
        let text = format!("{TEXT}\n[[link]]\nfrom = \"x\"\nto = \"y\"\n");
        let names = removable(&text);
        assert!(names.contains(&"up".into()) && names.contains(&"x-y".into()), "{names:?}");
        for name in &names {
            assert!(edited(&text, "", std::slice::from_ref(name)).is_ok(), "{name}");
        }
        assert!(!names.iter().any(|name| name.contains(['{', '.'])), "{names:?}");
        // A link that a count makes would have to go with it.
        assert!(!names.contains(&"a".into()) && edited(&text, "", &["a".into()]).is_err(), "{names:?}");
        assert_eq!(removable("link = [{ name = \"x\", from = \"a\", to = \"b\" }]\n"), [""; 0]);
    }

    #[test]
    fn what_is_not_a_section_is_refused() {
        let error = |name: &str| without_section(TEXT, name, &NAMED).unwrap_err().to_string();
        assert!(error("up.forward").contains("remove \"up\""));
        assert!(error("dsl2").contains("with a count"));
        assert!(error("nothing").contains("no [[link]]"));
        let nobody = edited(TEXT, "", &["a".into()]).unwrap_err();
        assert!(nobody.to_string().contains("with a count"), "{nobody}");
        let list = "link = [{ name = \"x\", from = \"a\", to = \"b\" }]\n";
        assert_eq!(edited(list, "", &["x".into()]), Err(EditError::Inline("x".into())));
        assert_eq!(edited("[[", "", &["x".into()]), Err(EditError::NotToml));
    }
}
