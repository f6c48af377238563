//! Shell tests whose result is determined by the script alone: test(1).

/// Whether a command is a test.
pub(super) fn is_test(words: &[String]) -> bool {
    words.first().is_some_and(|word| ["[", "[[", "test"].contains(&word.as_str()))
}

/// The result of a test. A script is assumed to start without arguments: `$1` is empty, `$#` is 0. None if
/// the script does not determine it.
pub(super) fn holds(words: &[String]) -> Option<bool> {
    let (_, words) = words.split_first()?;
    let inner = match words.split_last() {
        Some((last, rest)) if ["]", "]]"].contains(&last.as_str()) => rest,
        _ => words,
    };
    let operands: Vec<String> = inner.iter().map(|word| known(word)).collect::<Option<_>>()?;
    let operands: Vec<&str> = operands.iter().map(String::as_str).collect();
    let negated = operands.iter().take_while(|word| **word == "!").count();
    let result = plain(&operands[negated..])?;
    Some(result != (negated % 2 == 1))
}

/// A word with the arguments of a script that has none; none if it contains another variable without a value.
fn known(word: &str) -> Option<String> {
    let (mut plain, mut rest) = (String::new(), word);
    while let Some(at) = rest.find('$') {
        plain += &rest[..at];
        rest = &rest[at + 1..];
        let (name, behind) = match rest.strip_prefix('{') {
            Some(inner) => inner.split_once('}')?,
            None => {
                let digits = rest.bytes().take_while(u8::is_ascii_digit).take(1).count();
                rest.split_at_checked(digits.max(1))?
            }
        };
        match name {
            "#" => plain.push('0'),
            "@" | "*" => {}
            _ if name != "0" && name.bytes().all(|byte| byte.is_ascii_digit()) => {}
            _ => return None,
        }
        rest = behind;
    }
    plain += rest;
    (!plain.contains('`')).then_some(plain)
}

fn plain(words: &[&str]) -> Option<bool> {
    let numbers = |left: &str, right: &str| Some((left.parse::<i64>().ok()?, right.parse::<i64>().ok()?));
    match words {
        [] => Some(false),
        [word] => Some(!word.is_empty()),
        ["-z", word] => Some(word.is_empty()),
        ["-n", word] => Some(!word.is_empty()),
        [_, "=" | "==" | "!=", right] if right.contains(['*', '?', '[']) => None,
        [left, "=" | "==", right] => Some(left == right),
        [left, "!=", right] => Some(left != right),
        [left, operator, right] => {
            let (left, right) = numbers(left, right)?;
            match *operator {
                "-eq" => Some(left == right),
                "-ne" => Some(left != right),
                "-lt" => Some(left < right),
                "-le" => Some(left <= right),
                "-gt" => Some(left > right),
                "-ge" => Some(left >= right),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_tests() {
        for (text, wanted) in [
            ("[ ! -z $1 ]", Some(false)),
            ("[ -z $1 ]", Some(true)),
            ("test -n x", Some(true)),
            ("[ -n ]", Some(true)),
            ("[ $# -gt 0 ]", Some(false)),
            ("[ $# -eq 0 ]", Some(true)),
            ("[[ a == b ]]", Some(false)),
            ("[[ a != b ]]", Some(true)),
            ("[[ a == a* ]]", None),
            ("[ ! ! x ]", Some(true)),
            ("[ -f /etc/passwd ]", None),
            ("[ -z $HOME ]", None),
            ("[ x -eq 1 ]", None),
            ("[ ]", Some(false)),
            ("[ x$1 != x ]", Some(false)),
            ("[ a${12}b$#$@ = ab0 ]", Some(true)),
            ("[ x$10 = x0 ]", Some(true)),
            ("[ x$Y = x ]", None),
            ("[ x${Y} = x ]", None),
            ("[ x${1 = x ]", None),
            ("[ $0 = x ]", None),
            ("[ x$ = x ]", None),
        ] {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            assert_eq!((is_test(&words), holds(&words)), (true, wanted), "{text}");
        }
    }
}
