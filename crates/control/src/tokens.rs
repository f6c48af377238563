//! Who may do what with an API that others can reach: bearer tokens (RFC 6750) and certificates of clients,
//! each with a scope.

use crate::agent::of_part;
use crate::certificate::{Certificate, Holder};
use crate::problem::Problem;
use axum::http::{HeaderMap, Method, StatusCode, header};
use percent_encoding::percent_decode_str;
use sha2::{Digest, Sha256};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};
use thiserror::Error;

/// What a token or a certificate lets its bearer do. Each scope includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Read everything.
    Read,
    /// Change settings, state and maps.
    Steer,
    /// Install and remove objects and programs, apply scenarios, end the instance.
    Install,
}

/// A file of tokens and certificates.
#[derive(Debug)]
pub struct Tokens {
    path: PathBuf,
    credentials: RwLock<Credentials>,
}

/// What a file says.
#[derive(Debug, Default)]
struct Credentials {
    /// Tokens as their hashes: the same time is needed for any that is wrong.
    tokens: Vec<(Scope, [u8; 32])>,
    certificates: Vec<(Scope, Holder)>,
}

/// Errors of a token file.
#[derive(Debug, Error)]
pub enum TokenError {
    /// It can't be read.
    #[error("can't read the tokens in {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Others can access it.
    #[error("others can read or write {0} (mode {mode:03o}); run: chmod 600 {0}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A line is invalid.
    #[error("{}, line {line}: {reason}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Its number, from 1 on.
        line: usize,
        /// What is wrong.
        reason: &'static str,
    },
    /// There is none.
    #[error(
        "{} has no token and no certificate; write lines such as: read TOKEN (openssl rand -hex 32)",
        .0.display()
    )]
    Empty(PathBuf),
}

/// The shortest token: 128 bits in hexadecimal digits.
const SHORTEST: usize = 32;
const LONGEST: usize = 512;

impl Scope {
    const ALL: [(&'static str, Self); 3] =
        [("read", Self::Read), ("steer", Self::Steer), ("install", Self::Install)];

    /// Its name in a token file.
    pub fn word(self) -> &'static str {
        Self::ALL[self as usize].0
    }
}

impl Tokens {
    /// Reads a file with a scope and a token or a certificate in each line; lines that begin with `#` are
    /// comments.
    ///
    /// # Errors
    /// If others can access it, or a line is invalid.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        Ok(Self { path: path.into(), credentials: RwLock::new(Credentials::read(path)?) })
    }

    /// Reads the file again: what it says is true of the next request.
    ///
    /// # Errors
    /// As [`Tokens::read`]; what was read before stays.
    pub fn read_again(&self) -> Result<(), TokenError> {
        let credentials = Credentials::read(&self.path)?;
        *self.credentials.write().unwrap_or_else(PoisonError::into_inner) = credentials;
        Ok(())
    }

    /// Checks that a request's token, or its client's certificate, lets it do what it asks for. Returns its
    /// scope; none if it needs none.
    ///
    /// # Errors
    /// If neither has a scope, or only a smaller one.
    pub(crate) fn check(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
        certificate: Option<&Certificate>,
    ) -> Result<Option<Scope>, Box<Problem>> {
        let Some(needed) = needed(method, path) else { return Ok(None) };
        let refused = |status, detail: String| Err(Box::new(Problem::new(status, detail)));
        let credentials = self.credentials.read().unwrap_or_else(PoisonError::into_inner);
        let scope =
            credentials.scope_of_token(headers).max(certificate.and_then(|of| credentials.scope_of(of)));
        match (scope, certificate) {
            (Some(scope), _) if scope >= needed => Ok(Some(scope)),
            (Some(scope), _) => {
                let (scope, needed) = (scope.word(), needed.word());
                refused(StatusCode::FORBIDDEN, format!("your scope is {scope}, and this needs {needed}"))
            }
            (None, Some(certificate)) => {
                let (needed, print) = (needed.word(), certificate.fingerprint());
                let detail = format!(
                    "your certificate has no scope here, and this needs {needed}; a line of the file gives \
                     it one (read, steer, or install to run scenarios): SCOPE {print}"
                );
                refused(StatusCode::FORBIDDEN, detail)
            }
            (None, None) => {
                let detail = "send a token of this service: Authorization: Bearer TOKEN";
                refused(StatusCode::UNAUTHORIZED, detail.into())
            }
        }
    }
}

impl Credentials {
    fn read(path: &Path) -> Result<Self, TokenError> {
        let failed = |source| TokenError::Unreadable { path: path.into(), source };
        let mode = fs::metadata(path).map_err(failed)?.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(TokenError::Open { path: path.into(), mode });
        }
        Self::parse(path, &fs::read_to_string(path).map_err(failed)?)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, TokenError> {
        let mut all = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            let wrong = |reason| TokenError::Line { path: path.into(), line: number, reason };
            let mut words = line.split_ascii_whitespace();
            let word = match words.next() {
                None => continue,
                Some(word) if word.starts_with('#') => continue,
                Some(word) => word,
            };
            let scope = Scope::ALL.iter().find(|(known, _)| *known == word).map(|(_, scope)| *scope);
            let scope = scope.ok_or_else(|| wrong("it must begin with a scope: read, steer or install"))?;
            let (Some(token), None) = (words.next(), words.next()) else {
                return Err(wrong("write a scope and a token or certificate, and nothing else"));
            };
            if Holder::is_named_by(token) {
                all.certificates.push((scope, token.parse().map_err(wrong)?));
                continue;
            }
            if !(SHORTEST..=LONGEST).contains(&token.len()) {
                return Err(wrong(
                    "a token must have 32 to 512 characters; create one with openssl rand -hex 32",
                ));
            }
            all.tokens.push((scope, hash(token)));
        }
        let is_empty = all.tokens.is_empty() && all.certificates.is_empty();
        if is_empty { Err(TokenError::Empty(path.into())) } else { Ok(all) }
    }

    /// The scope of a certificate.
    fn scope_of(&self, certificate: &Certificate) -> Option<Scope> {
        let own = self.certificates.iter().filter(|(_, holder)| holder.is(certificate));
        own.map(|(scope, _)| *scope).max()
    }

    /// The scope of a request's token.
    fn scope_of_token(&self, headers: &HeaderMap) -> Option<Scope> {
        let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
        let (scheme, token) = value.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let hash = hash(token.trim());
        // All are looked at, so that the time says nothing about which fits.
        let own = self.tokens.iter().filter(|(_, known)| is_same(known, &hash));
        own.map(|(scope, _)| *scope).max()
    }
}

/// Whether a request asks what a scenario would change, which changes nothing.
fn is_comparison(method: &Method, path: &str) -> bool {
    *method == Method::POST && path == "/v1/scenario/differences"
}

/// The scope that a request needs; none for the files of the dashboard, which contain nothing about an
/// instance.
fn needed(method: &Method, path: &str) -> Option<Scope> {
    if let Some((_, below)) = of_part(path) {
        return Some(needed(method, below).unwrap_or(Scope::Read));
    }
    if !path.starts_with("/v1") && path != "/metrics" {
        return None;
    }
    if [Method::GET, Method::HEAD].contains(method) || is_comparison(method, path) {
        return Some(Scope::Read);
    }
    // What a handler is given is decoded, too.
    let part =
        |number| percent_decode_str(path.split('/').nth(number).unwrap_or_default()).decode_utf8_lossy();
    // /v1/COLLECTION/NAME, and below a router /v1/routers/NAME/forwarders/ID/state and the like. What is not
    // known to be less is to install.
    let steers = match (method.as_str(), &*part(2), &*part(4)) {
        ("PATCH", "links" | "sources" | "media" | "ports" | "routers" | "flows", _) => true,
        ("PUT", "routers", "leases") => true,
        ("PUT" | "POST" | "DELETE", "routers", "forwarders") => !part(6).is_empty(),
        _ => false,
    };
    Some(if steers { Scope::Steer } else { Scope::Install })
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

fn is_same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate;
    use axum::http::HeaderValue;
    use std::os::unix::fs::PermissionsExt;

    const FILE: &str = "# who may do what\nread aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n\n\
        steer bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\ninstall cccccccccccccccccccccccccccccccc\n";

    #[test]
    fn scopes_include_those_before_them() {
        let credentials = RwLock::new(Credentials::parse(Path::new("tokens"), FILE).unwrap());
        let tokens = Tokens { path: "tokens".into(), credentials };
        let status = |letter: &str, method: Method, path: &str| {
            let mut headers = HeaderMap::new();
            if !letter.is_empty() {
                let value = format!("Bearer {}", letter.repeat(32));
                headers.insert(header::AUTHORIZATION, HeaderValue::from_str(&value).unwrap());
            }
            tokens.check(&method, path, &headers, None).map_or_else(|problem| problem.status, |_| 200)
        };
        for (method, path, needs) in [
            (Method::GET, "/v1/stats", "a"),
            (Method::GET, "/metrics", "a"),
            (Method::GET, "/v1/scenario", "a"),
            (Method::PATCH, "/v1/links/up", "b"),
            (Method::PATCH, "/v1/%6cinks/up", "b"),
            (Method::PATCH, "/v1/routers/r/forwarders/1/maps/m", "b"),
            (Method::PUT, "/v1/routers/r/forwarders/1/state", "b"),
            (Method::POST, "/v1/routers/r/forwarders/1/events", "b"),
            (Method::PUT, "/v1/routers/r/leases", "b"),
            (Method::PATCH, "/v1/flows/r%2Fvoice", "b"),
            (Method::PATCH, "/v1/forwarders/r%2Ff", "c"),
            (Method::PATCH, "/v1/%66orwarders/r%2Ff", "c"),
            (Method::PATCH, "/parts/a/v1/forwarder%73/r%2Ff", "c"),
            (Method::PATCH, "/v1/%73cenario", "c"),
            (Method::POST, "/v1/routers/r/forwarders", "c"),
            (Method::DELETE, "/v1/routers/r/forwarders/1", "c"),
            (Method::POST, "/v1/scenario/differences", "a"),
            (Method::POST, "/parts/wan/v1/scenario/differences", "a"),
            (Method::PATCH, "/v1/scenario", "c"),
            (Method::PUT, "/v1/scenario", "c"),
            (Method::POST, "/v1/links", "c"),
            (Method::DELETE, "/v1/links/up", "c"),
            (Method::DELETE, "/v1/instance", "c"),
            (Method::GET, "/v1/agent", "a"),
            (Method::PUT, "/v1/agent/parts/wan", "c"),
            (Method::DELETE, "/v1/agent/parts/wan", "c"),
            (Method::GET, "/parts/wan/v1/stats", "a"),
            (Method::GET, "/parts/wan/anything", "a"),
            (Method::PATCH, "/parts/wan/v1/links/up", "b"),
            (Method::DELETE, "/parts/wan/v1/links/up", "c"),
            (Method::PUT, "/parts/wan/parts/wan/v1/scenario", "c"),
        ] {
            for letter in ["a", "b", "c"] {
                let expected = if letter >= needs { 200 } else { 403 };
                assert_eq!(status(letter, method.clone(), path), expected, "{letter} {method} {path}");
            }
            for unknown in ["", "d"] {
                assert_eq!(status(unknown, method.clone(), path), 401, "{method} {path}");
            }
        }
        assert_eq!(status("", Method::GET, "/"), 200, "the dashboard's own files");
    }

    #[test]
    fn certificates_have_the_highest_scope_of_their_lines() {
        let hash = "ab".repeat(32);
        let text =
            format!("read name:alice\nsteer sha256:{hash}\ninstall name:bob\nsteer {}\n", "t".repeat(32));
        let credentials = RwLock::new(Credentials::parse(Path::new("tokens"), &text).unwrap());
        let tokens = Tokens { path: "tokens".into(), credentials };
        let check = |certificate: &Certificate, method: Method, headers: &HeaderMap| {
            tokens.check(&method, "/v1/links/up", headers, Some(certificate))
        };
        let none = HeaderMap::new();
        let alice = certificate::tests::named(&["alice"], 0xab);
        assert!(check(&alice, Method::PATCH, &none).is_ok(), "by its fingerprint");
        assert_eq!(check(&alice, Method::DELETE, &none).unwrap_err().status, 403);
        let alice_anew = certificate::tests::named(&["alice"], 0xac);
        assert!(check(&alice_anew, Method::GET, &none).is_ok(), "by its name");
        assert_eq!(check(&alice_anew, Method::PATCH, &none).unwrap_err().status, 403);
        let bearer = HeaderMap::from_iter([(
            header::AUTHORIZATION,
            HeaderValue::from_str(&format!("Bearer {}", "t".repeat(32))).unwrap(),
        )]);
        assert!(check(&alice_anew, Method::PATCH, &bearer).is_ok(), "a token adds to it");
        let stranger = certificate::tests::named(&["*"], 0xcd);
        let problem = check(&stranger, Method::GET, &none).unwrap_err();
        let line = format!("SCOPE sha256:{}", "cd".repeat(32));
        assert_eq!(problem.status, 403);
        assert!(problem.detail.contains("needs read") && problem.detail.ends_with(&line), "{problem:?}");
    }

    #[test]
    fn a_file_that_is_wrong_is_refused() {
        let error = |text: &str| Credentials::parse(Path::new("t"), text).unwrap_err().to_string();
        assert_eq!(
            error("read x\n").split(';').next(),
            Some("t, line 1: a token must have 32 to 512 characters")
        );
        assert!(error("\nadmin x").starts_with("t, line 2: it must begin with a scope"));
        assert!(error("read").ends_with("and nothing else"));
        assert!(error("# none\n").starts_with("t has no token"));
        assert!(error("read sha256:ab").contains("64 hexadecimal digits"));
        let path = std::env::temp_dir().join(format!("longwire-tokens-{}", std::process::id()));
        fs::write(&path, FILE).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(Tokens::read(&path), Err(TokenError::Open { mode: 0o644, .. })));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let tokens = Tokens::read(&path).unwrap();
        let count = || tokens.credentials.read().unwrap().tokens.len();
        assert_eq!(count(), 3);
        // A change that is wrong leaves what was read.
        fs::write(&path, "read").unwrap();
        assert!(tokens.read_again().is_err() && count() == 3);
        fs::write(&path, format!("read {}\n", "a".repeat(32))).unwrap();
        assert!(tokens.read_again().is_ok() && count() == 1);
        fs::remove_file(path).unwrap();
    }
}
