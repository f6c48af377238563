//! Certificates of clients: what proves who asks, and how a file of tokens names one.

use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;
use tokio_rustls::rustls::pki_types::CertificateDer;

/// Bytes of a SHA-256 fingerprint.
const FINGERPRINT: usize = 32;
/// What a name or a fingerprint begins with in a file of tokens.
const BY_NAME: &str = "name:";
const BY_FINGERPRINT: &str = "sha256:";

/// A certificate by which a client has proven who it is: a trusted authority signed it, and the client has
/// its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Certificate {
    fingerprint: [u8; FINGERPRINT],
    /// Its DNS names among the alternative names of the subject (RFC 5280, section 4.2.1.6).
    names: Vec<String>,
}

impl Certificate {
    /// Reads one that has been verified; without names if it has none that can be read.
    pub(crate) fn of(der: &CertificateDer<'_>) -> Self {
        let read = webpki::EndEntityCert::try_from(der);
        let names = read.iter().flat_map(|read| read.valid_dns_names()).map(str::to_owned).collect();
        Self { fingerprint: Sha256::digest(der).into(), names }
    }

    /// Its fingerprint as a file of tokens names it.
    pub(crate) fn fingerprint(&self) -> String {
        Holder::Fingerprint(self.fingerprint).to_string()
    }
}

/// Who is meant by an entry of a file of tokens that names a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Holder {
    /// Whoever has the key of a certificate with this name. Patterns in a certificate fit no name.
    Name(String),
    /// Whoever has the key of this certificate.
    Fingerprint([u8; FINGERPRINT]),
}

impl Holder {
    /// Whether a word of a file of tokens names a certificate, rightly or wrongly.
    pub(crate) fn is_named_by(word: &str) -> bool {
        word.starts_with(BY_NAME) || word.starts_with(BY_FINGERPRINT)
    }

    /// Whether this certificate is meant.
    pub(crate) fn is(&self, certificate: &Certificate) -> bool {
        match self {
            Self::Name(name) => certificate.names.iter().any(|known| known.eq_ignore_ascii_case(name)),
            Self::Fingerprint(fingerprint) => *fingerprint == certificate.fingerprint,
        }
    }
}

impl FromStr for Holder {
    type Err = &'static str;

    /// Reads `name:alice.example` or `sha256:` and 64 hexadecimal digits, with colons or without.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(name) = text.strip_prefix(BY_NAME) {
            let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            let fits = !name.is_empty() && name.chars().all(is_name);
            return fits
                .then(|| Self::Name(name.into()))
                .ok_or("after name: comes a DNS name of a certificate");
        }
        let digits = text.strip_prefix(BY_FINGERPRINT).unwrap_or_default().replace(':', "");
        let is_hex = digits.len() == 2 * FINGERPRINT && digits.chars().all(|c| c.is_ascii_hexdigit());
        let byte = |at: usize| u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok();
        let bytes: Option<Vec<u8>> = if is_hex { (0..FINGERPRINT).map(byte).collect() } else { None };
        let how =
            "after sha256: come 64 hexadecimal digits, as openssl x509 -noout -fingerprint -sha256 prints";
        bytes.and_then(|bytes| bytes.try_into().ok()).map(Self::Fingerprint).ok_or(how)
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "{BY_NAME}{name}"),
            Self::Fingerprint(bytes) => {
                f.write_str(BY_FINGERPRINT)?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A certificate with these names, and a fingerprint of this byte.
    pub(crate) fn named(names: &[&str], byte: u8) -> Certificate {
        let names = names.iter().map(|name| name.to_string()).collect();
        Certificate { fingerprint: [byte; FINGERPRINT], names }
    }

    #[test]
    fn certificates_are_named_by_name_or_fingerprint() {
        let alice = named(&["alice.example", "*.example"], 0xab);
        let holder = |text: &str| text.parse::<Holder>().unwrap();
        for (text, is_alice) in [
            ("name:alice.example", true),
            ("name:Alice.Example", true),
            ("name:bob.example", false),
            ("name:example", false),
            (&*format!("sha256:{}", "ab".repeat(32)), true),
            (&*format!("sha256:{}", ["AB"; 32].join(":")), true),
            (&*format!("sha256:{}", "ac".repeat(32)), false),
        ] {
            assert_eq!(holder(text).is(&alice), is_alice, "{text}");
            assert_eq!(holder(&holder(text).to_string()), holder(text));
        }
        for wrong in ["name:", "name:*.example", "name:a b", "sha256:", "sha256:ab", "sha256:x", "alice"] {
            assert!(wrong.parse::<Holder>().is_err(), "{wrong}");
        }
        let long = format!("sha256:{}", "ab".repeat(33));
        assert!(long.parse::<Holder>().unwrap_err().contains("64 hexadecimal digits"));
    }
}
