//! The API's endpoints.

#![allow(
    unused_qualifications,
    reason = "`utoipa::path` writes the full paths of the types that it is given"
)]

use crate::changes::Changes;
use crate::{
    ChangeRoute, ForwarderAsk, Info, Instance, LinkAnswer, LinkPage, Medium, Problem, RoutePage, Source,
    WeighFlow,
};
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use utoipa::openapi::OpenApi;
use utoipa::{IntoParams, OpenApi as _};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Longest body of a request, in bytes.
const MAX_BODY: usize = 64 * 1024;
/// Longest body with an object file, in hexadecimal digits.
const MAX_OBJECT: usize = 9 << 20;
/// Most links per page.
const MAX_PAGE: usize = 10_000;
/// Time limit of a request, its body included.
const REQUEST_TIME: Duration = Duration::from_secs(10);

type Running = State<Arc<dyn Instance>>;

#[derive(utoipa::OpenApi)]
#[openapi(info(
    title = "Longwire",
    description = "A running instance of Longwire: its links, counters and settings."
))]
struct Document;

/// The OpenAPI document of the API.
pub fn openapi() -> OpenApi {
    described().split_for_parts().1
}

/// All endpoints with their limits, and the answer to unknown requests.
pub(crate) fn router(instance: Arc<dyn Instance>) -> Router {
    described()
        .split_for_parts()
        .0
        .fallback(nothing_there)
        .method_not_allowed_fallback(not_allowed)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(axum::middleware::from_fn(within_time))
        .with_state(instance)
}

fn described() -> OpenApiRouter<Arc<dyn Instance>> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(instance))
        .routes(routes!(stats))
        .routes(routes!(links))
        .routes(routes!(link, set_link))
        .routes(routes!(source, set_source))
        .routes(routes!(medium, set_medium))
        .routes(routes!(router_routes, change_route))
        .routes(routes!(weigh_flow))
        .merge(OpenApiRouter::new().routes(routes!(forwarders)).layer(DefaultBodyLimit::max(MAX_OBJECT)))
        .routes(routes!(stop))
        .routes(routes!(document))
}

/// Which instance answers.
#[utoipa::path(get, path = "/v1/instance", responses((status = OK, body = Info)))]
async fn instance(State(instance): Running) -> Result<Json<Info>, Problem> {
    let info = blocking(move || Info {
        name: instance.name(),
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").into(),
        links: instance.link_names().len(),
    });
    info.await.map(Json)
}

/// Everything the instance counts.
#[utoipa::path(get, path = "/v1/stats", responses((status = OK, body = Object)))]
async fn stats(State(instance): Running) -> Result<Json<serde_json::Value>, Problem> {
    blocking(move || instance.stats()).await.map(Json)
}

/// Which links to show.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Page {
    /// Place in the plan of the first link.
    #[serde(default)]
    from: usize,
    /// Number of links: at most 10000.
    #[serde(default = "default_count")]
    #[param(default = 1000, maximum = 10000)]
    count: usize,
}

fn default_count() -> usize {
    1000
}

/// Links with their settings and counters, in the order of the plan.
#[utoipa::path(get, path = "/v1/links", params(Page), responses(
    (status = OK, body = LinkPage),
    (status = BAD_REQUEST, body = Problem, content_type = "application/problem+json"),
))]
async fn links(
    State(instance): Running,
    page: Result<Query<Page>, QueryRejection>,
) -> Result<Json<LinkPage>, Problem> {
    let Query(Page { from, count }) = page.map_err(|e| Problem::new(e.status(), e.body_text()))?;
    let page = blocking(move || {
        let names = instance.link_names();
        let chosen = names.iter().skip(from).take(count.min(MAX_PAGE));
        let links =
            chosen.filter_map(|name| instance.link(name)).flat_map(|found| found.links().to_vec()).collect();
        LinkPage { total: names.len(), from, links }
    });
    page.await.map(Json)
}

/// One link, or both directions of a duplex link.
#[utoipa::path(get, path = "/v1/links/{name}", params(("name" = String, Path, description = "The link")), responses(
    (status = OK, body = LinkAnswer),
    (status = NOT_FOUND, body = Problem, content_type = "application/problem+json"),
))]
async fn link(
    State(instance): Running,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<LinkAnswer>, Problem> {
    let Path(name) = name.map_err(|e| Problem::new(e.status(), e.body_text()))?;
    let found = blocking(move || {
        instance.link(&name).ok_or_else(|| {
            let problem = Problem::new(StatusCode::NOT_FOUND, format!("there is no link \"{name}\""));
            Box::new(problem.suggest(&name, instance.link_names().iter()))
        })
    });
    found.await?.map(Json).map_err(|problem| *problem)
}

/// Changes a link, or both directions of a duplex link, between two batches of packets: all named settings,
/// or none; others are kept.
#[utoipa::path(patch, path = "/v1/links/{name}", params(("name" = String, Path, description = "The link")),
    request_body(
        content = std::collections::BTreeMap<String, String>,
        description = "Settings as text",
        example = json!({"rate": "5 Mbit/s", "delay": "40 ms"}),
    ),
    responses(
        (status = OK, description = "The link after the change", body = LinkAnswer),
        (status = BAD_REQUEST, description = "Not JSON, not an object, or a value that is not text", body = Problem,
            content_type = "application/problem+json"),
        (status = NOT_FOUND, description = "No such link", body = Problem, content_type = "application/problem+json"),
        (status = PAYLOAD_TOO_LARGE, body = Problem, content_type = "application/problem+json"),
        (status = UNSUPPORTED_MEDIA_TYPE, body = Problem, content_type = "application/problem+json"),
        (status = UNPROCESSABLE_ENTITY, description = "No such setting, or a value it can't have", body = Problem,
            content_type = "application/problem+json"),
        (status = SERVICE_UNAVAILABLE, body = Problem, content_type = "application/problem+json"),
    ))]
async fn set_link(
    State(instance): Running,
    name: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<LinkAnswer>, Problem> {
    let Path(name) = name.map_err(|e| Problem::new(e.status(), e.body_text()))?;
    let Changes(changes) = changes_of(&headers, body)?;
    let changed = blocking(move || {
        instance
            .set_link(&name, &changes)
            .map_err(|error| Box::new(Problem::from_set(&error, &instance.link_names())))
    });
    changed.await?.map(Json).map_err(|problem| *problem)
}

/// One traffic source.
#[utoipa::path(get, path = "/v1/sources/{name}", params(("name" = String, Path, description = "The source")), responses(
    (status = OK, body = Source),
    (status = NOT_FOUND, body = Problem, content_type = "application/problem+json"),
))]
async fn source(
    State(instance): Running,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<Source>, Problem> {
    let Path(name) = name.map_err(|e| Problem::new(e.status(), e.body_text()))?;
    let found = blocking(move || {
        instance.source(&name).ok_or_else(|| {
            let problem = Problem::new(StatusCode::NOT_FOUND, format!("there is no source \"{name}\""));
            Box::new(problem.suggest(&name, instance.source_names().iter()))
        })
    });
    found.await?.map(Json).map_err(|problem| *problem)
}

/// Changes a traffic source while it sends: all named settings, or none; others are kept.
#[utoipa::path(patch, path = "/v1/sources/{name}", params(("name" = String, Path, description = "The source")),
    request_body(
        content = std::collections::BTreeMap<String, String>,
        description = "Settings as text",
        example = json!({"rate": "5 Mbit/s"}),
    ),
    responses(
        (status = OK, description = "The source after the change", body = Source),
        (status = BAD_REQUEST, description = "Not JSON, not an object, or a value that is not text", body = Problem,
            content_type = "application/problem+json"),
        (status = NOT_FOUND, description = "No such source", body = Problem, content_type = "application/problem+json"),
        (status = PAYLOAD_TOO_LARGE, body = Problem, content_type = "application/problem+json"),
        (status = CONFLICT, description = "It is not run in real time", body = Problem, content_type = "application/problem+json"),
        (status = UNSUPPORTED_MEDIA_TYPE, body = Problem, content_type = "application/problem+json"),
        (status = UNPROCESSABLE_ENTITY, description = "No such setting, or a value it can't have", body = Problem,
            content_type = "application/problem+json"),
        (status = SERVICE_UNAVAILABLE, body = Problem, content_type = "application/problem+json"),
    ))]
async fn set_source(
    State(instance): Running,
    name: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<Source>, Problem> {
    let Path(name) = name.map_err(|e| Problem::new(e.status(), e.body_text()))?;
    let Changes(changes) = changes_of(&headers, body)?;
    let changed = blocking(move || {
        instance
            .set_source(&name, &changes)
            .map_err(|error| Box::new(Problem::from_set(&error, &instance.source_names())))
    });
    changed.await?.map(Json).map_err(|problem| *problem)
}

/// One shared medium.
#[utoipa::path(get, path = "/v1/media/{name}", params(("name" = String, Path, description = "The medium")), responses(
    (status = OK, body = Medium),
    (status = NOT_FOUND, body = Problem, content_type = "application/problem+json"),
))]
async fn medium(
    State(instance): Running,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<Medium>, Problem> {
    let Path(name) = name.map_err(|e| Problem::new(e.status(), e.body_text()))?;
    let found = blocking(move || {
        instance.medium(&name).ok_or_else(|| {
            let problem = Problem::new(StatusCode::NOT_FOUND, format!("there is no medium \"{name}\""));
            Box::new(problem.suggest(&name, instance.medium_names().iter()))
        })
    });
    found.await?.map(Json).map_err(|problem| *problem)
}

/// Changes a shared medium: all named settings, or none; others are kept.
#[utoipa::path(patch, path = "/v1/media/{name}", params(("name" = String, Path, description = "The medium")),
    request_body(
        content = std::collections::BTreeMap<String, String>,
        description = "Settings as text",
        example = json!({"rate": "5 Mbit/s"}),
    ),
    responses(
        (status = OK, description = "The medium after the change", body = Medium),
        (status = BAD_REQUEST, description = "Not JSON, not an object, or a value that is not text", body = Problem,
            content_type = "application/problem+json"),
        (status = NOT_FOUND, description = "No such medium", body = Problem, content_type = "application/problem+json"),
        (status = PAYLOAD_TOO_LARGE, body = Problem, content_type = "application/problem+json"),
        (status = UNSUPPORTED_MEDIA_TYPE, body = Problem, content_type = "application/problem+json"),
        (status = UNPROCESSABLE_ENTITY, description = "No such setting, or a value it can't have", body = Problem,
            content_type = "application/problem+json"),
        (status = SERVICE_UNAVAILABLE, body = Problem, content_type = "application/problem+json"),
    ))]
async fn set_medium(
    State(instance): Running,
    name: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<Medium>, Problem> {
    let Path(name) = name.map_err(|e| Problem::new(e.status(), e.body_text()))?;
    let Changes(changes) = changes_of(&headers, body)?;
    let changed = blocking(move || {
        instance
            .set_medium(&name, &changes)
            .map_err(|error| Box::new(Problem::from_set(&error, &instance.medium_names())))
    });
    changed.await?.map(Json).map_err(|problem| *problem)
}

/// A router's routes, including those to its own networks; if there are very many, the first.
#[utoipa::path(get, path = "/v1/routers/{name}/routes", params(("name" = String, Path, description = "The router")),
    responses(
        (status = OK, body = RoutePage),
        (status = NOT_FOUND, body = Problem, content_type = "application/problem+json"),
        (status = SERVICE_UNAVAILABLE, body = Problem, content_type = "application/problem+json"),
    ))]
async fn router_routes(
    State(instance): Running,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<RoutePage>, Problem> {
    let Path(name) = name.map_err(|e| Problem::new(e.status(), e.body_text()))?;
    let found = blocking(move || {
        instance.routes(&name).map_err(|error| Box::new(Problem::from_set(&error, &instance.router_names())))
    });
    found.await?.map(Json).map_err(|problem| *problem)
}

/// Adds or removes a route of a router between two batches of packets.
#[utoipa::path(patch, path = "/v1/routers/{name}/routes", params(("name" = String, Path, description = "The router")),
    request_body(content = ChangeRoute, description = "The route to add, or the network to remove the route of"),
    responses(
        (status = NO_CONTENT, description = "It is so now"),
        (status = BAD_REQUEST, description = "Not one change", body = Problem, content_type = "application/problem+json"),
        (status = NOT_FOUND, description = "No such router", body = Problem, content_type = "application/problem+json"),
        (status = PAYLOAD_TOO_LARGE, body = Problem, content_type = "application/problem+json"),
        (status = UNSUPPORTED_MEDIA_TYPE, body = Problem, content_type = "application/problem+json"),
        (status = UNPROCESSABLE_ENTITY, description = "No such route", body = Problem,
            content_type = "application/problem+json"),
        (status = SERVICE_UNAVAILABLE, body = Problem, content_type = "application/problem+json"),
    ))]
async fn change_route(
    State(instance): Running,
    name: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<StatusCode, Problem> {
    let Path(name) = name.map_err(|e| Problem::new(e.status(), e.body_text()))?;
    let (add, route) = match json_of::<ChangeRoute>(&headers, body)? {
        ChangeRoute { add: Some(route), remove: None } => (true, route),
        ChangeRoute { add: None, remove: Some(route) } => (false, route),
        _ => return Err(Problem::new(StatusCode::BAD_REQUEST, "name one change: add or remove")),
    };
    let changed = blocking(move || {
        instance
            .change_route(&name, add, &route)
            .map_err(|error| Box::new(Problem::from_set(&error, &instance.router_names())))
    });
    changed.await?.map(|()| StatusCode::NO_CONTENT).map_err(|problem| *problem)
}

/// Changes the weight of a flow that shares a router's processors between two batches of packets.
#[utoipa::path(patch, path = "/v1/routers/{name}/flows", params(("name" = String, Path, description = "The router")),
    request_body(content = WeighFlow, description = "The flow's name and its weight"),
    responses(
        (status = NO_CONTENT, description = "It is so now"),
        (status = BAD_REQUEST, description = "Not a flow and a whole number", body = Problem, content_type = "application/problem+json"),
        (status = NOT_FOUND, description = "No such router", body = Problem, content_type = "application/problem+json"),
        (status = PAYLOAD_TOO_LARGE, body = Problem, content_type = "application/problem+json"),
        (status = UNSUPPORTED_MEDIA_TYPE, body = Problem, content_type = "application/problem+json"),
        (status = UNPROCESSABLE_ENTITY, description = "No such flow, or a weight it can't have", body = Problem,
            content_type = "application/problem+json"),
        (status = SERVICE_UNAVAILABLE, body = Problem, content_type = "application/problem+json"),
    ))]
async fn weigh_flow(
    State(instance): Running,
    name: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<StatusCode, Problem> {
    let Path(name) = name.map_err(|e| Problem::new(e.status(), e.body_text()))?;
    let WeighFlow { flow, weight } = json_of(&headers, body)?;
    let changed = blocking(move || {
        instance
            .weigh_flow(&name, &flow, weight)
            .map_err(|error| Box::new(Problem::from_set(&error, &instance.router_names())))
    });
    changed.await?.map(|()| StatusCode::NO_CONTENT).map_err(|problem| *problem)
}

/// Reads a router's programs, or installs, removes and changes them between two batches of packets.
#[utoipa::path(post, path = "/v1/routers/{name}/forwarders", params(("name" = String, Path, description = "The router")),
    request_body(content = ForwarderAsk, description = "What is asked, or to be done"),
    responses(
        (status = OK, body = Object),
        (status = BAD_REQUEST, description = "No such action", body = Problem, content_type = "application/problem+json"),
        (status = NOT_FOUND, description = "No such router", body = Problem, content_type = "application/problem+json"),
        (status = PAYLOAD_TOO_LARGE, body = Problem, content_type = "application/problem+json"),
        (status = UNSUPPORTED_MEDIA_TYPE, body = Problem, content_type = "application/problem+json"),
        (status = UNPROCESSABLE_ENTITY, description = "No such program or map, or it can't be installed", body = Problem,
            content_type = "application/problem+json"),
        (status = SERVICE_UNAVAILABLE, body = Problem, content_type = "application/problem+json"),
    ))]
async fn forwarders(
    State(instance): Running,
    name: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<serde_json::Value>, Problem> {
    let Path(name) = name.map_err(|e| Problem::new(e.status(), e.body_text()))?;
    let ask = json_of::<ForwarderAsk>(&headers, body)?;
    let answered = blocking(move || {
        instance
            .forwarders(&name, &ask)
            .map_err(|error| Box::new(Problem::from_set(&error, &instance.router_names())))
    });
    answered.await?.map(Json).map_err(|problem| *problem)
}

/// Ends the instance, as SIGTERM does. The answer comes before the end.
#[utoipa::path(post, path = "/v1/stop", responses((status = ACCEPTED, description = "It will end")))]
async fn stop(State(instance): Running) -> Result<StatusCode, Problem> {
    blocking(move || instance.stop()).await?;
    Ok(StatusCode::ACCEPTED)
}

/// This API's description, in OpenAPI 3.1.
#[utoipa::path(get, path = "/v1/openapi.json", responses((status = OK, body = Object)))]
async fn document() -> Json<OpenApi> {
    Json(openapi())
}

/// Calls the instance on a thread that may block.
async fn blocking<T: Send + 'static>(ask: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
    let failed = |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the instance failed to answer");
    tokio::task::spawn_blocking(ask).await.map_err(failed)
}

async fn within_time(request: Request, next: Next) -> Response {
    let late = |_| {
        let detail = format!("not done within {} s", REQUEST_TIME.as_secs());
        Problem::new(StatusCode::REQUEST_TIMEOUT, detail).into_response()
    };
    tokio::time::timeout(REQUEST_TIME, next.run(request)).await.unwrap_or_else(late)
}

async fn nothing_there(uri: Uri) -> Problem {
    let detail = format!("there is no {}; /v1/openapi.json lists what there is", uri.path());
    Problem::new(StatusCode::NOT_FOUND, detail)
}

async fn not_allowed(method: Method, uri: Uri) -> Problem {
    let detail = format!("{} does not take {method}; /v1/openapi.json lists what it takes", uri.path());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail)
}

/// The settings in a request.
#[expect(clippy::result_large_err, reason = "the answer is made of it at once")]
fn changes_of(headers: &HeaderMap, body: Result<Bytes, BytesRejection>) -> Result<Changes, Problem> {
    json_of(headers, body)
}

/// The body of a request, which must be JSON.
#[expect(clippy::result_large_err, reason = "the answer is made of it at once")]
fn json_of<T: serde::de::DeserializeOwned>(
    headers: &HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<T, Problem> {
    if !says_json(headers) {
        let detail = "send the settings as JSON, with Content-Type: application/json";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    }
    let body =
        body.map_err(|e| Problem::new(e.status(), format!("{}; at most {MAX_BODY} bytes", e.body_text())))?;
    serde_json::from_slice(&body).map_err(|e| Problem::new(StatusCode::BAD_REQUEST, e.to_string()))
}

fn says_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let kind = kind.split(';').next().unwrap_or("").trim();
    ["application/json", "application/merge-patch+json"].iter().any(|known| kind.eq_ignore_ascii_case(known))
}
