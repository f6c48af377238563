//! Extractors of paths, queries and bodies, whose errors become problems.

use crate::answers::Written;
use crate::instance::Instance;
use crate::object::Kind;
use crate::problem::Problem;
use crate::saving::Made;
use crate::set_error::SetError;
use axum::Json;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Time for a body to arrive. What it asks for may take longer, and is answered when it is done: an earlier
/// answer could only say that nobody knows.
const BODY_TIME: Duration = Duration::from_secs(10);

/// The instance behind the API.
pub(crate) type Running = State<Arc<dyn Instance>>;

/// Parameters in the path.
pub(crate) struct InPath<T>(pub(crate) T);

/// Parameters in the query.
pub(crate) struct InQuery<T>(pub(crate) T);

/// The body of a request, which must be JSON.
pub(crate) struct Body<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for InPath<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(found) = Path::from_request_parts(parts, state)
            .await
            .map_err(|error| Problem::new(error.status(), error.body_text()))?;
        Ok(Self(found))
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for InQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Query(found) = Query::from_request_parts(parts, state)
            .await
            .map_err(|error| of_query(error.status(), &error.body_text()))?;
        Ok(Self(found))
    }
}

/// The problem of a query with this fault, in which serde writes the names of the parameters between
/// backticks: the one that there is not, then the known ones.
fn of_query(status: StatusCode, fault: &str) -> Problem {
    let fault = fault.trim_start_matches("Failed to deserialize query string: ");
    let Some((_, names)) = fault.split_once("unknown field `") else {
        let fault = fault.replace("invalid digit found in string", "write a whole number, such as 1");
        return Problem::new(status, fault);
    };
    let mut names = names.split('`').step_by(2);
    let given = names.next().unwrap_or_default();
    let known: Vec<String> = names.map(str::to_owned).collect();
    let problem = Problem::new(status, format!("there is no parameter \"{given}\"")).at_key(given);
    let mut problem = problem.suggest(given, &known);
    if problem.suggestion.is_none() {
        problem.detail += &format!("; there are {}", known.join(", "));
    }
    problem
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        if !says_json(request.headers()) {
            let detail = "send the body as JSON, with Content-Type: application/json";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
        }
        let late = |_| {
            let detail = format!("the body was incomplete after {} s", BODY_TIME.as_secs());
            Problem::new(StatusCode::REQUEST_TIMEOUT, detail)
        };
        let bytes = timeout(BODY_TIME, Bytes::from_request(request, state)).await.map_err(late)?;
        let bytes = bytes.map_err(|error| Problem::new(error.status(), error.body_text()))?;
        // Which would be read as the fields of an object, in the order of their declaration.
        if bytes.trim_ascii_start().starts_with(b"[") {
            return Err(Problem::new(StatusCode::BAD_REQUEST, "the body is a list; write an object"));
        }
        let read = serde_json::from_slice(&bytes);
        read.map(Self).map_err(|error| Problem::new(StatusCode::BAD_REQUEST, error.to_string()))
    }
}

/// Whether headers declare the body as JSON.
fn says_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let kind = kind.split(';').next().unwrap_or("").trim();
    ["application/json", "application/merge-patch+json"].iter().any(|known| kind.eq_ignore_ascii_case(known))
}

/// Calls the instance on a thread that may block.
pub(crate) async fn blocking<T: Send + 'static>(
    ask: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    let failed = |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the instance failed to answer");
    tokio::task::spawn_blocking(ask).await.map_err(failed)
}

/// An instance's answer, or its problem.
pub(crate) async fn answered<T: Send + 'static>(
    instance: Arc<dyn Instance>,
    ask: impl FnOnce(&dyn Instance) -> Result<T, SetError> + Send + 'static,
) -> Result<Json<T>, Problem> {
    let answer = blocking(move || {
        ask(&*instance).map_err(|error| Box::new(Problem::from_set(&error, &|kind| instance.names(kind))))
    });
    answer.await?.map(Json).map_err(|problem| *problem)
}

/// An instance's answer to a change, when the change has been saved. No thread waits for that: many changes
/// are saved together.
pub(crate) async fn changed<T: Send + 'static>(
    instance: Arc<dyn Instance>,
    change: impl FnOnce(&dyn Instance) -> Result<Made<T>, SetError> + Send + 'static,
) -> Result<Json<T>, Problem> {
    let Json(made) = answered(Arc::clone(&instance), change).await?;
    made.saved().await.map(Json).map_err(|error| Problem::from_set(&error, &|kind| instance.names(kind)))
}

/// An instance's answer about its totals, or about objects of one kind: written once for all that ask the
/// same while it stays the same.
pub(crate) async fn written<T: Serialize>(
    instance: Arc<dyn Instance>,
    (kind, question): (Option<Kind>, String),
    ask: impl FnOnce(&dyn Instance) -> Result<T, SetError> + Send + 'static,
) -> Result<Written, Problem> {
    let answer = blocking(move || {
        let make = || {
            let refused = |error| Box::new(Problem::from_set(&error, &|kind| instance.names(kind)));
            let answer = ask(&*instance).map_err(refused)?;
            let what = "the answer can't be written";
            Written::new(&answer).map_err(|_| Box::new(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, what)))
        };
        match instance.kept(kind) {
            Some((answers, edition)) => answers.once(question, edition, make),
            None => make(),
        }
    });
    answer.await?.map_err(|problem| *problem)
}
