//! The API's endpoints of an agent, and the way to those of the instances that it runs.

#![allow(
    unused_qualifications,
    reason = "`utoipa::path` writes the full paths of the types that it is given"
)]

use crate::agent::{Agent, AgentError, AgentState, PartRequest, PartState, of_part};
use crate::document::with_descriptions;
use crate::instance::Instance;
use crate::problem::{Problem, Refusals};
use crate::requests::{Body, InPath, blocking};
use crate::routes::{endpoints, nothing_there};
use crate::tokens::Scope;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use serde_json::Value;
use std::sync::Arc;
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Longest part in a request with its files, in bytes.
const MAX_PART: usize = 16 << 20;

/// What requests need.
#[derive(Clone)]
struct Serving {
    agent: Arc<dyn Agent>,
    /// The endpoints of any instance.
    endpoints: Router<Arc<dyn Instance>>,
    document: Arc<Value>,
}

/// The agent behind the API.
type Here = State<Serving>;
/// A part whose start or end was begun.
type Accepted = Result<(StatusCode, Json<PartState>), Problem>;

#[derive(utoipa::OpenApi)]
#[openapi(
    components(schemas(Problem)),
    info(
        title = "Longwire agent",
        description = "A service that runs scenarios which clients send. The API of each is below \
            /parts/NAME."
    )
)]
struct Document;

/// All endpoints with their limits, and the answer to unknown requests.
pub(crate) fn router(agent: Arc<dyn Agent>) -> Router {
    let own = OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(state))
        .routes(routes!(part, start, end))
        .routes(routes!(openapi));
    let (own, document) = own.split_for_parts();
    let document = Arc::new(with_descriptions(serde_json::to_value(document).unwrap_or_default()));
    own.layer(DefaultBodyLimit::max(MAX_PART))
        .fallback(ask_part)
        .method_not_allowed_fallback(not_allowed)
        .with_state(Serving { agent, endpoints: endpoints(), document })
}

/// Shows the agent, and what it runs and has run.
#[utoipa::path(get, path = "/v1/agent", responses((status = OK, body = AgentState), Refusals))]
async fn state(State(serving): Here) -> Result<Json<AgentState>, Problem> {
    blocking(move || serving.agent.state()).await.map(Json)
}

/// Shows a part; one that has ended with its report.
#[utoipa::path(get, path = "/v1/agent/parts/{name}", params(("name" = String, Path)),
    responses((status = OK, body = PartState), Refusals))]
async fn part(State(serving): Here, InPath(name): InPath<String>) -> Result<Json<PartState>, Problem> {
    asked(move || serving.agent.part(&name)).await.map(Json)
}

/// Starts a part. The answer precedes the start.
#[utoipa::path(put, path = "/v1/agent/parts/{name}", params(("name" = String, Path)),
    request_body = PartRequest, responses((status = ACCEPTED, body = PartState), Refusals))]
async fn start(State(serving): Here, InPath(name): InPath<String>, Body(ask): Body<PartRequest>) -> Accepted {
    let started = asked(move || serving.agent.start(&name, &ask)).await?;
    Ok((StatusCode::ACCEPTED, Json(started)))
}

/// Ends a part, and precedes the end; forgets one that has ended.
#[utoipa::path(delete, path = "/v1/agent/parts/{name}", params(("name" = String, Path)),
    responses((status = ACCEPTED, body = PartState), Refusals))]
async fn end(State(serving): Here, InPath(name): InPath<String>) -> Accepted {
    let ended = asked(move || serving.agent.end(&name)).await?;
    Ok((StatusCode::ACCEPTED, Json(ended)))
}

/// Describes this API, in OpenAPI 3.1.
#[utoipa::path(get, path = "/v1/openapi.json", responses((status = OK, body = Object)))]
async fn openapi(State(serving): Here) -> Json<Value> {
    Json((*serving.document).clone())
}

/// An agent's answer, or its problem.
async fn asked<T: Send + 'static>(
    ask: impl FnOnce() -> Result<T, AgentError> + Send + 'static,
) -> Result<T, Problem> {
    blocking(ask).await?.map_err(|error| {
        let problem = |status| Problem::new(status, error.to_string());
        match &error {
            AgentError::Unknown(_) => problem(StatusCode::NOT_FOUND),
            AgentError::Value { key, .. } => problem(StatusCode::UNPROCESSABLE_ENTITY).at_key(key),
            AgentError::Refused(_) => problem(StatusCode::CONFLICT),
            AgentError::Failed(_) => problem(StatusCode::INTERNAL_SERVER_ERROR),
        }
    })
}

/// Passes a request below `/parts/NAME` to the instance of that name.
async fn ask_part(State(serving): Here, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let Some((name, path)) = of_part(head.uri.path()) else {
        return nothing_there(head.uri).await.into_response();
    };
    let Some(instance) = serving.agent.instance(name) else {
        let detail = format!("no part \"{name}\" runs here; /v1/agent lists those that do");
        return Problem::new(StatusCode::NOT_FOUND, detail).into_response();
    };
    let query = head.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let Ok(uri) = format!("{path}{query}").parse::<Uri>() else {
        return Problem::new(StatusCode::BAD_REQUEST, "the path can't be read").into_response();
    };
    // Of the extensions only the scope: the others have the limits and parameters of this router.
    let scope = head.extensions.get::<Scope>().copied();
    let mut passed = Request::new(body);
    (*passed.method_mut(), *passed.uri_mut(), *passed.headers_mut()) = (head.method, uri, head.headers);
    if let Some(scope) = scope {
        passed.extensions_mut().insert(scope);
    }
    let endpoints: Router = serving.endpoints.with_state(instance);
    match TowerToHyperService::new(endpoints).call(passed).await {
        Ok(answer) => answer,
        Err(impossible) => match impossible {},
    }
}

/// The answer to a method that a path does not take.
async fn not_allowed(method: Method, uri: Uri) -> Problem {
    let detail = format!("{} does not take {method}; /v1/openapi.json lists what it takes", uri.path());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail)
}
