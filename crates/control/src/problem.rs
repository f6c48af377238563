//! Errors as the API sends them: problem details of RFC 9457.

use crate::object::Kind;
use crate::set_error::{SetError, called};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use longwire_document::finding::suggestion;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use thiserror::Error;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::{self, Ref, RefOr};
use utoipa::{IntoResponses, ToSchema};

/// Reason why a request was refused (RFC 9457, media type `application/problem+json`).
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize, ToSchema)]
#[error("{detail}")]
pub struct Problem {
    /// Always `about:blank`: the status gives the kind.
    #[serde(rename = "type")]
    pub kind: String,
    /// The status as text.
    #[schema(example = "Not Found")]
    pub title: String,
    /// The HTTP status.
    #[schema(example = 404)]
    pub status: u16,
    /// The fault and its fix; if several settings are wrong, a line for each.
    #[schema(example = "there is no link \"upp\"; did you mean \"up\"?")]
    pub detail: String,
    /// The key of the request that is wrong, if any; of several the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What was probably meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// Whether the detail may quote files of the server.
    #[serde(skip)]
    #[schema(ignore)]
    quotes_files: bool,
}

/// Marks a response whose text may quote files of the server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QuotesFiles;

impl Problem {
    /// Creates a problem.
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            kind: "about:blank".into(),
            title: status.canonical_reason().unwrap_or("Error").into(),
            status: status.as_u16(),
            detail: detail.into(),
            key: None,
            suggestion: None,
            quotes_files: false,
        }
    }

    /// The problem of a parameter with a wrong value.
    pub(crate) fn of_value(key: &str, what: &str) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, format!("{key}: {what}")).at_key(key)
    }

    /// The problem of an instance that can't answer now.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    }

    /// Sets the key that is wrong.
    pub(crate) fn at_key(mut self, key: &str) -> Self {
        self.key = Some(key.into());
        self
    }

    /// The problem, if the text of a scenario in the request was that of `file`.
    pub fn in_file(mut self, file: &str) -> Self {
        if let Some(key) = &self.key {
            self.detail = called(key, file, &self.detail);
        }
        self
    }

    /// Adds the most similar of `known` to `given` as a suggestion.
    pub(crate) fn suggest<'a>(mut self, given: &str, known: impl IntoIterator<Item = &'a String>) -> Self {
        if let Some(meant) = suggestion(given, known.into_iter().map(String::as_str)) {
            self.detail += &format!("; did you mean \"{meant}\"?");
            self.suggestion = Some(meant.to_owned());
        }
        self
    }

    /// The problem for an instance's refusal; `names` returns the names of a kind's objects.
    pub(crate) fn from_set(error: &SetError, names: &dyn Fn(Kind) -> Arc<[String]>) -> Self {
        let problem = |status| Self::new(status, error.to_string());
        match error {
            SetError::Unknown { kind, name } => {
                problem(StatusCode::NOT_FOUND).suggest(name, &with_duplex(&names(*kind)))
            }
            SetError::NoObject { name } => {
                let near = |kind| {
                    let known = with_duplex(&names(kind));
                    let meant = suggestion(name, known.iter().map(String::as_str))?;
                    Some((kind, meant.to_owned()))
                };
                let near = Kind::ALL.into_iter().find_map(near);
                let mut problem = problem(StatusCode::NOT_FOUND);
                problem.detail += &meant(near.as_ref());
                problem.suggestion = near.map(|(_, name)| name);
                problem
            }
            SetError::Several(faults) => {
                let each: Vec<_> = faults.iter().map(|fault| Self::from_set(fault, names)).collect();
                let details: Vec<_> = each.iter().map(|problem| &*problem.detail).collect();
                let all = Self::new(StatusCode::UNPROCESSABLE_ENTITY, details.join("\n"));
                match each.iter().find_map(|problem| problem.key.as_ref()) {
                    Some(key) => all.at_key(key),
                    None => all,
                }
            }
            SetError::Refused(_) => problem(StatusCode::CONFLICT),
            // A suggestion makes the list unnecessary.
            SetError::UnknownKey { kind, key, known }
                if suggestion(key, known.iter().map(String::as_str)).is_some() =>
            {
                let what = format!("a {} has no \"{key}\"", kind.word());
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, what).at_key(key).suggest(key, known)
            }
            SetError::UnknownKey { key, .. } | SetError::Value { key, .. } => {
                problem(StatusCode::UNPROCESSABLE_ENTITY).at_key(key)
            }
            // It can name profiles, traces and tables of routes.
            SetError::Scenario { key, .. } => {
                Self { quotes_files: true, ..problem(StatusCode::UNPROCESSABLE_ENTITY).at_key(key) }
            }
            SetError::OfFile(fault) => Self { quotes_files: true, ..Self::from_set(fault, names) },
            SetError::Unavailable(_) | SetError::NotSaved(_) => problem(StatusCode::SERVICE_UNAVAILABLE),
        }
    }
}

/// The possible problems of a request about an object, for the API's description.
pub(crate) struct Refusals;

impl IntoResponses for Refusals {
    fn responses() -> BTreeMap<String, RefOr<openapi::Response>> {
        let each = [
            (StatusCode::BAD_REQUEST, "A path, query or body that can't be read"),
            (StatusCode::NOT_FOUND, "No such object"),
            (StatusCode::CONFLICT, "It can't change in this run"),
            (StatusCode::PAYLOAD_TOO_LARGE, "A body that is too long"),
            (StatusCode::UNSUPPORTED_MEDIA_TYPE, "A body that does not say that it is JSON"),
            (StatusCode::UNPROCESSABLE_ENTITY, "No such setting, or a value that it can't have"),
            (
                StatusCode::SERVICE_UNAVAILABLE,
                "The instance is ending, does not answer, or can't save its state",
            ),
        ];
        let response = |(status, description): (StatusCode, &str)| {
            let schema = Ref::from_schema_name(Problem::name());
            let content = ContentBuilder::new().schema(Some(schema)).build();
            let response = ResponseBuilder::new()
                .description(description)
                .content("application/problem+json", content)
                .build();
            (status.as_str().to_owned(), RefOr::T(response))
        };
        each.into_iter().map(response).collect()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = [(header::CONTENT_TYPE, "application/problem+json")];
        let quotes_files = self.quotes_files;
        let mut response = (status, headers, axum::Json(self)).into_response();
        if quotes_files {
            response.extensions_mut().insert(QuotesFiles);
        }
        response
    }
}

/// The object that was probably meant, as a part of an error's text.
pub(crate) fn meant(near: Option<&(Kind, String)>) -> String {
    near.map(|(kind, name)| format!("; did you mean the {} \"{name}\"?", kind.word())).unwrap_or_default()
}

/// The names with those of duplex links, which are listed as their two directions.
fn with_duplex(names: &[String]) -> Vec<String> {
    let duplex = names.iter().filter_map(|name| name.strip_suffix(".forward")).map(String::from);
    duplex.chain(names.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_become_problems() {
        let names = ["up", "wan.forward", "wan.backward"].map(String::from);
        let of = |error: &SetError| Problem::from_set(error, &|_| names.clone().into());
        let unknown = |name: &str| of(&SetError::Unknown { kind: Kind::Link, name: name.into() });
        let problem = unknown("upp");
        assert_eq!((problem.status, problem.suggestion.as_deref()), (404, Some("up")));
        assert_eq!(unknown("wam").suggestion.as_deref(), Some("wan"), "a duplex link");
        let problem = of(&SetError::NoObject { name: "wam".into() });
        let wanted = "there is no link or other object \"wam\"; did you mean the link \"wan\"?";
        assert_eq!((problem.status, &*problem.detail), (404, wanted));
        assert_eq!(problem.suggestion.as_deref(), Some("wan"));
        let known = vec!["rate".to_string(), "delay".into()];
        let unknown = |key: &str, known: &[String]| {
            of(&SetError::UnknownKey { kind: Kind::Link, key: key.into(), known: known.to_vec() })
        };
        let problem = unknown("dealy", &known);
        assert_eq!(problem.detail, "a link has no \"dealy\"; did you mean \"delay\"?");
        assert_eq!((problem.status, problem.key.as_deref()), (422, Some("dealy")));
        assert_eq!(unknown("Bandwidth", &known).suggestion.as_deref(), Some("rate"), "called so elsewhere");
        assert_eq!(unknown("colour", &known).detail, "a link has no \"colour\"; it has rate, delay");
        let many: Vec<String> = (0..100).map(|n| format!("setting{n}")).collect();
        assert_eq!(
            unknown("colour", &many).detail,
            "a link has no \"colour\"; longwire blocks lists what it can have"
        );
        let (key, mistakes) = ("toml".into(), "toml:1:4: not TOML\n 1 | toml:\n\ntoml:2:1: no".into());
        let problem = of(&SetError::Scenario { key, mistakes });
        assert_eq!((problem.status, problem.key.as_deref()), (422, Some("toml")));
        assert_eq!(problem.in_file("a").detail, "a:1:4: not TOML\n 1 | toml:\n\na:2:1: no");
        let (key, reason) = ("rate".into(), "has no unit".into());
        assert_eq!(of(&SetError::Value { key, reason }).in_file("a").detail, "rate: has no unit");
        let values = ["rate", "delay"].map(|key| SetError::Value { key: key.into(), reason: "no".into() });
        let problem = of(&SetError::of_all(values.into()));
        assert_eq!((&*problem.detail, problem.key.as_deref()), ("rate: no\ndelay: no", Some("rate")));
        let no_time = SetError::Value { key: "delay".into(), reason: "traces: line 1: no time".into() };
        for (error, quotes_files) in [(no_time.clone(), false), (SetError::OfFile(no_time.into()), true)] {
            let problem = of(&error);
            assert_eq!((problem.status, problem.key.as_deref()), (422, Some("delay")));
            assert_eq!(problem.into_response().extensions().get::<QuotesFiles>().is_some(), quotes_files);
        }
        let problem = of(&SetError::Unavailable("it is stopping".into()));
        assert_eq!(problem.status, 503);
    }
}
