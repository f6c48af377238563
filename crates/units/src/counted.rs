//! Numbers of things.

/// A number with its noun, which has a regular plural: `1 packet`, `2 packets`.
pub fn counted(number: impl Into<u64>, noun: &str) -> String {
    let number = number.into();
    format!("{number} {}", plural(number, noun))
}

/// The noun for this many, for numbers that are printed in another form.
pub fn plural(number: u64, noun: &str) -> String {
    if number == 1 { noun.into() } else { format!("{noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        let all = [0u64, 1, 2].map(|number| counted(number, "packet"));
        assert_eq!(all, ["0 packets", "1 packet", "2 packets"]);
    }
}
