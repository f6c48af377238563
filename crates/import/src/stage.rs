//! Settings of one link for one element of another tool.

use super::LinkText;
use longwire_scenario::quoted;

/// The settings of one link, in packet order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Stage {
    /// Keys and their values as TOML.
    pub(super) settings: Vec<(String, String)>,
    /// A comment that describes the link.
    pub(super) comment: String,
}

impl From<LinkText> for Stage {
    fn from(text: LinkText) -> Self {
        Self { settings: text.settings, comment: String::new() }
    }
}

impl Stage {
    /// An empty stage described by `comment`.
    pub(super) fn named(comment: &str) -> Self {
        Self { settings: Vec::new(), comment: comment.into() }
    }

    /// Sets the first parameter of a key's first kind.
    pub(super) fn set(&mut self, key: &str, value: &str) {
        self.put(key, quoted(value));
    }

    /// Sets a key to a block of this kind with these parameters.
    pub(super) fn block(&mut self, key: &str, kind: &str, parameters: &[(&str, String)]) {
        self.put(key, block(kind, parameters));
    }

    /// Whether it has no settings.
    pub(super) fn is_empty(&self) -> bool {
        self.settings.is_empty()
    }

    /// For the command line.
    pub(super) fn into_text(self) -> LinkText {
        LinkText { settings: self.settings }
    }

    fn put(&mut self, key: &str, value: String) {
        self.settings.retain(|(own, _)| own != key);
        self.settings.push((key.into(), value));
    }
}

/// A block as a TOML table in one line.
pub(super) fn block(kind: &str, parameters: &[(&str, String)]) -> String {
    let mut text = format!("{{ kind = {}", quoted(kind));
    for (name, value) in parameters {
        text += &format!(", {name} = {}", quoted(value));
    }
    text + " }"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_toml() {
        let mut stage = Stage::named("x");
        assert!(stage.is_empty());
        stage.set("loss", "1 %");
        stage.block("loss", "correlated", &[("probability", "1 %".into()), ("correlation", "25 %".into())]);
        let expected = "{ kind = \"correlated\", probability = \"1 %\", correlation = \"25 %\" }";
        assert_eq!(stage.into_text().settings, [("loss".to_owned(), expected.to_owned())]);
    }
}
