//! Tokenizer of expressions.

use crate::error::{ExpressionError, Fault, quoted};

/// Most bytes of an expression.
pub(crate) const MAX_TEXT: usize = 16 * 1024;

/// A part of the text: a word (numbers and addresses included) or a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub text: &'a str,
    pub is_word: bool,
    /// Its offset in the text, in bytes.
    pub start: usize,
    /// For an opening parenthesis: the number of the token that closes it.
    pub closed_by: Option<usize>,
}

/// Longest first, so that `<<` is not split.
const SYMBOLS: &[&str] = &[
    "&&", "||", "<<", ">>", "<=", ">=", "==", "!=", "(", ")", "[", "]", ":", "/", "*", "+", "-", "%", "&",
    "|", "^", "<", ">", "=", "!",
];

/// The tokens of `text`.
///
/// # Errors
/// The text is too long, or contains an invalid character.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token<'_>>, ExpressionError> {
    if text.len() > MAX_TEXT {
        return Err(ExpressionError {
            column: 1,
            found: quoted(text),
            fault: Fault::Limit,
            fix: format!("write it in at most {MAX_TEXT} bytes, or as several rules"),
        });
    }
    let mut tokens: Vec<Token> = Vec::new();
    let mut open = Vec::new();
    let mut start = 0;
    while let Some(first) = text[start..].chars().next() {
        let rest = &text[start..];
        if first.is_whitespace() {
            start += first.len_utf8();
            continue;
        }
        let word = word_len(rest);
        let (len, is_word) = if word > 0 { (word, true) } else { (symbol(text, start)?.len(), false) };
        match &rest[..len] {
            "(" => open.push(tokens.len()),
            ")" => {
                if let Some(opening) = open.pop() {
                    let this: usize = tokens.len();
                    tokens[opening].closed_by = Some(this);
                }
            }
            _ => {}
        }
        tokens.push(Token { text: &rest[..len], is_word, start, closed_by: None });
        start += len;
    }
    Ok(tokens)
}

/// The column, counted from 1 in characters, of a byte offset.
pub(crate) fn column(text: &str, start: usize) -> usize {
    text.get(..start).unwrap_or(text).chars().count() + 1
}

fn symbol(text: &str, start: usize) -> Result<&'static str, ExpressionError> {
    let rest = &text[start..];
    SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)).copied().ok_or_else(|| ExpressionError {
        column: column(text, start),
        found: quoted(&rest.chars().take(1).collect::<String>()),
        fault: Fault::Unknown,
        fix: "expressions are words, numbers, addresses, parentheses and operators such as && || ! = <"
            .into(),
    })
}

/// Length in bytes of the word at the start of `rest`; 0 if there is none.
///
/// An address with colons is one word: two colons in a row, or as many as an Ethernet or IPv6 address has. A
/// single colon separates, as in `ip[2:2]`. Dots and hyphens belong to a word if something follows them.
fn word_len(rest: &str) -> usize {
    let run = |is_part: fn(&u8) -> bool| rest.bytes().take_while(is_part).count();
    let address = run(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.'));
    let colons = rest[..address].bytes().filter(|&byte| byte == b':').count();
    let follows = rest.as_bytes().get(address).is_some_and(u8::is_ascii_alphanumeric);
    if !follows && (rest[..address].contains("::") || colons >= 5) {
        return address;
    }
    let escape = usize::from(rest.starts_with('\\'));
    let word = rest[escape..].bytes();
    let word =
        word.take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')).count();
    let word = rest[escape..escape + word].trim_end_matches(['-', '.', '_']);
    if word.starts_with(['-', '.', '_']) || word.is_empty() { 0 } else { escape + word.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_words_addresses_and_symbols() {
        let table: [(&str, &[&str]); 9] = [
            ("tcp port 80", &["tcp", "port", "80"]),
            ("ip[2:2]-4>=0x10", &["ip", "[", "2", ":", "2", "]", "-", "4", ">=", "0x10"]),
            ("net fe80::/10||host ::1", &["net", "fe80::", "/", "10", "||", "host", "::1"]),
            ("ether host 0:1:2:3:4:f", &["ether", "host", "0:1:2:3:4:f"]),
            (
                "tcp[tcpflags]&(tcp-syn|tcp-fin)!=0",
                &["tcp", "[", "tcpflags", "]", "&", "(", "tcp-syn", "|", "tcp-fin", ")", "!=", "0"],
            ),
            ("!ip6&&portrange 1-2", &["!", "ip6", "&&", "portrange", "1-2"]),
            ("ip proto \\tcp", &["ip", "proto", "\\tcp"]),
            ("host ::ffff:1.2.3.4", &["host", "::ffff:1.2.3.4"]),
            ("1<<2>>3<=4==5", &["1", "<<", "2", ">>", "3", "<=", "4", "==", "5"]),
        ];
        for (text, wanted) in table {
            let found: Vec<_> = tokens(text).unwrap().iter().map(|token| token.text).collect();
            assert_eq!(found, wanted);
        }
    }

    #[test]
    fn parentheses_know_their_partners() {
        let partners: Vec<_> = tokens("((a) b) (").unwrap().iter().map(|token| token.closed_by).collect();
        assert_eq!(partners, [Some(5), Some(3), None, None, None, None, None]);
    }

    #[test]
    fn other_characters_are_named_with_their_column() {
        let error = tokens("ip größe").unwrap_err();
        assert_eq!((error.column, error.found.as_str()), (6, "\"ö\""));
        assert_eq!(tokens(&" ".repeat(MAX_TEXT + 1)).unwrap_err().fault, Fault::Limit);
    }
}
