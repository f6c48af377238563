//! The specification's test vectors from `PROTOCOL.md`.

use std::collections::BTreeMap;

const PAGE: &str = include_str!("../../PROTOCOL.md");

/// The page's blocks ```` ```vector NAME ````: hexadecimal digits, with a comment after `#` in each line.
pub fn vectors() -> BTreeMap<&'static str, Vec<u8>> {
    let mut all = BTreeMap::new();
    for block in PAGE.split("```vector ").skip(1) {
        let (name, rest) = block.split_once('\n').unwrap();
        let (text, _) = rest.split_once("```").unwrap();
        let digits: String = text.lines().map(|line| line.split('#').next().unwrap()).collect();
        let digits: Vec<u8> = digits.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let value = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
        assert!(
            all.insert(name, digits.chunks(2).map(value).collect()).is_none(),
            "{name} stands there twice"
        );
    }
    all
}
