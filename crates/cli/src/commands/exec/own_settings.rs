//! Settings of one direction, on top of those of both.

use longwire_block::Spec;
use longwire_import::LinkText;
use longwire_scenario::{implied_kind, quoted};

/// Sets `key` of one of `links`: of the one that has a block of that key, else of the last. A parameter,
/// `rate.overhead`, leaves the block's others as they are. The value is TOML.
pub fn set(links: &mut [LinkText], key: &str, value: &str) {
    let (block, parameter) = key.split_once('.').map_or((key, None), |(block, name)| (block, Some(name)));
    let has_block = |link: &LinkText| link.settings.iter().any(|(own, _)| is_of(own, block));
    let at = links.iter().position(has_block).unwrap_or(links.len().saturating_sub(1));
    let Some(LinkText { settings }) = links.get_mut(at) else { return };
    if parameter.is_some()
        && let Some(place) = settings.iter().position(|(own, _)| own == block)
    {
        let (_, whole) = settings.remove(place);
        settings.extend(parameters(block, &whole));
    }
    if parameter == Some("kind") {
        // Another kind keeps the parameters that it has, too.
        let spec = longwire_link::registry()
            .into_iter()
            .find(|spec| spec.key == block && quoted(spec.kind) == value);
        let keeps = |name: &str| spec.is_none_or(|spec| spec.params.iter().any(|param| param.name == name));
        settings.retain(|(own, _)| {
            own.strip_prefix(block).is_none_or(|own| own.strip_prefix('.').is_none_or(keeps))
        });
    }
    settings.retain(|(own, _)| own != key);
    settings.push((key.to_owned(), value.to_owned()));
}

/// Whether a setting is a block, or a parameter of it.
fn is_of(setting: &str, block: &str) -> bool {
    setting.split('.').next() == Some(block)
}

/// The parameters of a block that is written as one value or as a table, each as a key of the link: TOML does
/// not extend either by further keys.
fn parameters(block: &str, whole: &str) -> Vec<(String, String)> {
    let Some(table) = whole.strip_prefix('{') else {
        return vec![(format!("{block}.{}", meant(block, whole)), whole.to_owned())];
    };
    let mut rest = table.trim().trim_end_matches('}').trim_end();
    let mut all = Vec::new();
    while let Some((name, value)) = rest.split_once(" = ") {
        let (value, behind) = value.split_at(length(value));
        all.push((format!("{block}.{name}"), value.to_owned()));
        rest = behind.trim_start_matches([',', ' ']);
    }
    all
}

/// The parameter that a value sets that is written for a whole block.
fn meant(block: &str, value: &str) -> &'static str {
    let registry = longwire_link::registry();
    if implied_kind(&registry, block, value.trim_matches('"')).is_some() {
        return "kind";
    }
    let first = |spec: &&'static Spec| spec.params.first().map(|param| param.name);
    registry.iter().find(|spec| spec.key == block).and_then(first).unwrap_or("kind")
}

/// The bytes of the TOML value at the start of a text: a string in quotation marks, or up to a comma.
fn length(text: &str) -> usize {
    let Some(inner) = text.strip_prefix('"') else { return text.find(',').unwrap_or(text.len()) };
    let mut is_escaped = false;
    let end = inner.find(|c| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_leaves_the_others() {
        let jitter = "{ kind = \"jitter\", delay = \"60 ms\", jitter = \"5 ms\" }";
        for (before, key, value, after) in [
            (
                ("rate", "\"5 Mbit/s\""),
                "rate.overhead",
                "20",
                "rate.rate = \"5 Mbit/s\", rate.overhead = \"20\"",
            ),
            (("queue", "\"codel\""), "queue.target", "5ms", "queue.kind = \"codel\", queue.target = \"5ms\""),
            (
                ("delay", jitter),
                "delay.jitter",
                "2ms",
                "delay.kind = \"jitter\", delay.delay = \"60 ms\", delay.jitter = \"2ms\"",
            ),
            (
                ("delay", "\"60 ms\""),
                "delay.kind",
                "jitter",
                "delay.delay = \"60 ms\", delay.kind = \"jitter\"",
            ),
            (("loss", "\"1 %\""), "loss.kind", "burst", "loss.kind = \"burst\""),
            (("delay", jitter), "delay", "1ms", "delay = \"1ms\""),
            (("delay", jitter), "loss", "1%", "loss = \"1%\""),
        ] {
            let settings = vec![(before.0.to_owned(), before.1.to_owned())];
            let mut links = [LinkText { settings }];
            set(&mut links, key, &quoted(value));
            let texts =
                links[0].settings.iter().filter(|(own, _)| own.starts_with(key.split('.').next().unwrap()));
            let texts: Vec<_> = texts.map(|(key, value)| format!("{key} = {value}")).collect();
            assert_eq!(texts.join(", "), after, "{key}={value}");
        }
    }

    #[test]
    fn texts_end_at_their_quotation_mark() {
        let table = "{ kind = \"trace\", file = \"a\\\" = \\\\\", x = 5 }";
        let wanted = [("rate.kind", "\"trace\""), ("rate.file", "\"a\\\" = \\\\\""), ("rate.x", "5")];
        assert_eq!(parameters("rate", table), wanted.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }
}
