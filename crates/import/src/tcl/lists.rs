//! Lists of Tcl as texts.

/// The items of a list: words, with braces as quotes.
pub(crate) fn items(list: &str) -> Vec<String> {
    let (mut all, mut item, mut depth) = (Vec::new(), String::new(), 0usize);
    for c in list.chars() {
        match c {
            '{' => {
                if depth > 0 {
                    item.push(c);
                }
                depth += 1;
            }
            '}' if depth > 0 => {
                depth -= 1;
                if depth > 0 {
                    item.push(c);
                }
            }
            c if c.is_whitespace() && depth == 0 => {
                if !item.is_empty() {
                    all.push(std::mem::take(&mut item));
                }
            }
            c => item.push(c),
        }
    }
    if !item.is_empty() {
        all.push(item);
    }
    all
}

/// A word as an item of a list.
pub(super) fn listed(word: &str) -> String {
    if word.is_empty() || word.contains(char::is_whitespace) { format!("{{{word}}}") } else { word.into() }
}
