//! The API's endpoints, but for those of programs.

#![allow(
    unused_qualifications,
    reason = "`utoipa::path` writes the full paths of the types that it is given"
)]

use crate::answers::Written;
use crate::changes::Changes;
use crate::document::{Methods, for_each_kind, with_descriptions};
use crate::forwarder_routes;
use crate::instance::{Info, Instance, RoutePage};
use crate::object::{Kind, Object, ObjectPage, ObjectQuery, OneObject, Settable, Sort};
use crate::overview::{EventPage, EventQuery, Summary, Topology};
use crate::problem::{Problem, Refusals};
use crate::requests::{Body, InPath, InQuery, Running, answered, blocking, changed, written};
use crate::rewire::{RewireRequest, RewireResponse, section};
use crate::rows::RowFilter;
use crate::scenario::{Comparison, ScenarioRequest, ScenarioText};
use crate::tokens::Scope;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json, Router};
use serde::Deserialize;
use serde_json::Value;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use utoipa::{IntoParams, OpenApi as _};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Longest request body in bytes.
const MAX_BODY: usize = 64 * 1024;
/// Longest scenario in a request, in bytes.
const MAX_SCENARIO: usize = 16 << 20;
/// Most objects on a page.
const MAX_PAGE: usize = 10_000;
/// Most links with separate series.
const MAX_LINKS: usize = 1000;
/// The format of OpenMetrics 1.0.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What an instance answers as JSON.
type Answer<T> = Result<Json<T>, Problem>;

/// The methods of all paths, which are the same in every run.
static METHODS: LazyLock<Methods> = LazyLock::new(|| Methods::of(&document(|_| Vec::new())));

/// The document as it was sent last: all instances of a process have the same settings.
static DOCUMENT: WrittenDocument = WrittenDocument(Mutex::new(None));

/// The settings of each kind of objects.
type AllSettable = [Vec<Settable>; Kind::ALL.len()];

/// A document, written once for all that read it: as a tree, it takes megabytes.
struct WrittenDocument(Mutex<Option<(AllSettable, Written)>>);

impl WrittenDocument {
    /// The document of instances with these settings.
    fn of(&self, settable: AllSettable) -> serde_json::Result<Written> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, written)) = last.as_ref().filter(|(of, _)| *of == settable) {
            return Ok(written.clone());
        }
        let at = |kind| Kind::ALL.iter().position(|known| *known == kind);
        let tree = document(|kind| at(kind).map(|at| settable[at].clone()).unwrap_or_default());
        let written = Written::new(&tree)?;
        *last = Some((settable, written.clone()));
        Ok(written)
    }
}

#[derive(utoipa::OpenApi)]
#[openapi(
    components(schemas(Problem, Sort)),
    info(
        title = "Longwire",
        description = "A running instance of Longwire: its objects (links, sources, media, ports, routers, \
            flows, forwarders), counters and settings."
    )
)]
struct Document;

/// All endpoints of `instance`, with their limits, and the answer to unknown requests.
pub(crate) fn router(instance: Arc<dyn Instance>) -> Router {
    endpoints().with_state(instance)
}

/// The endpoints of any instance, with their limits.
pub(crate) fn endpoints() -> Router<Arc<dyn Instance>> {
    described()
        .split_for_parts()
        .0
        .fallback(nothing_there)
        .method_not_allowed_fallback(not_allowed)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(from_fn(of_known_methods))
}

/// The endpoints and their descriptions; those of objects are generic.
pub(crate) fn described() -> OpenApiRouter<Arc<dyn Instance>> {
    let scenarios = OpenApiRouter::new().routes(routes!(scenario, apply, rewire)).routes(routes!(compare));
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(instance, stop))
        .routes(routes!(stats))
        .routes(routes!(summary))
        .routes(routes!(topology))
        .routes(routes!(events))
        .routes(routes!(openapi))
        .routes(routes!(objects, add))
        .routes(routes!(object, set, remove))
        .routes(routes!(router_routes))
        .merge(forwarder_routes::described())
        .routes(routes!(metrics))
        .merge(scenarios.layer(DefaultBodyLimit::max(MAX_SCENARIO)))
}

/// The OpenAPI document of an instance's API, with the settings that changes accept.
pub fn document(settable: impl Fn(Kind) -> Vec<Settable>) -> Value {
    let written = serde_json::to_value(described().split_for_parts().1).unwrap_or_default();
    for_each_kind(with_descriptions(written), settable)
}

/// Identifies the instance.
#[utoipa::path(get, path = "/v1/instance", responses((status = OK, body = Info)))]
async fn instance(State(instance): Running) -> Answer<Info> {
    let info = blocking(move || Info {
        name: instance.name(),
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").into(),
        links: instance.names(Kind::Link).len(),
    });
    info.await.map(Json)
}

/// Ends the instance, as SIGTERM does. The answer precedes the end.
#[utoipa::path(delete, path = "/v1/instance", responses((status = ACCEPTED, description = "It will end")))]
async fn stop(State(instance): Running) -> Result<StatusCode, Problem> {
    blocking(move || instance.stop()).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Shows all counters of the instance, or some rows. Without a filter, of very many links
/// those that carried most have rows. With one, rows_left is the number of rows after those shown.
#[utoipa::path(get, path = "/v1/stats", params(RowFilter),
    responses((status = OK, body = Object), Refusals))]
async fn stats(State(instance): Running, InQuery(filter): InQuery<RowFilter>) -> Answer<Value> {
    let stats = blocking(move || instance.stats(&filter));
    stats.await?.map(Json).map_err(|problem| *problem)
}

/// Shows the totals: small and fast, however many objects there are.
#[utoipa::path(get, path = "/v1/summary", responses((status = OK, body = Summary), Refusals))]
async fn summary(State(instance): Running) -> Result<Written, Problem> {
    written(instance, (None, "summary".into()), |instance| instance.summary()).await
}

/// Shows the graph: hosts, ports, bridges and routers, and the links between them. With parameters, it is
/// what the links that they select join.
#[utoipa::path(get, path = "/v1/topology", params(ObjectQuery),
    responses((status = OK, body = Topology), Refusals))]
async fn topology(
    State(instance): Running,
    uri: Uri,
    InQuery(choice): InQuery<ObjectQuery>,
) -> Answer<Topology> {
    check_count(choice.count).map_err(|problem| *problem)?;
    let joined = uri.query().is_some_and(|query| !query.is_empty()).then_some(choice);
    answered(instance, move |instance| instance.topology(joined.as_ref())).await
}

/// Lists the scheduled changes, and what has happened: changes, faults, turns of the verdict.
#[utoipa::path(get, path = "/v1/events", params(EventQuery),
    responses((status = OK, body = EventPage), Refusals))]
async fn events(State(instance): Running, InQuery(query): InQuery<EventQuery>) -> Answer<EventPage> {
    blocking(move || instance.events(query)).await.map(Json)
}

/// Describes this API, in OpenAPI 3.1.
#[utoipa::path(get, path = "/v1/openapi.json", responses((status = OK, body = Object)))]
async fn openapi(State(instance): Running) -> Result<Written, Problem> {
    let written = blocking(move || DOCUMENT.of(Kind::ALL.map(|kind| instance.settable(kind))));
    written
        .await?
        .map_err(|_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the document can't be written"))
}

fn check_count(count: usize) -> Result<(), Box<Problem>> {
    if count <= MAX_PAGE {
        return Ok(());
    }
    let what = format!("at most {MAX_PAGE} objects are shown at a time");
    Err(Box::new(Problem::of_value("count", &what)))
}

/// Lists the {kind}s with their settings and counters.
#[utoipa::path(get, path = "/v1/{kind}", params(("kind" = String, Path), ObjectQuery),
    responses((status = OK, body = ObjectPage), Refusals))]
async fn objects(
    State(instance): Running,
    uri: Uri,
    InPath(collection): InPath<String>,
    InQuery(choice): InQuery<ObjectQuery>,
) -> Result<Written, Problem> {
    let Some(kind) = Kind::of_collection(&collection) else { return Err(nothing_there(uri).await) };
    check_count(choice.count).map_err(|problem| *problem)?;
    let question = format!("{kind:?} {choice:?}");
    written(instance, (Some(kind), question), move |instance| instance.page(kind, &choice)).await
}

/// Adds a {kind} to the running instance, with the keys of its section in a scenario.
#[utoipa::path(post, path = "/v1/{kind}", params(("kind" = String, Path)), request_body = Object,
    responses((status = CREATED, body = RewireResponse), Refusals))]
async fn add(
    State(instance): Running,
    method: Method,
    uri: Uri,
    InPath(collection): InPath<String>,
    Body(Changes(pairs)): Body<Changes>,
) -> Result<(StatusCode, Json<RewireResponse>), Problem> {
    if Kind::of_collection(&collection) != Some(Kind::Link) {
        return Err(not_allowed(method, uri).await);
    }
    let ask = RewireRequest { add: section(Kind::Link.word(), &pairs), ..RewireRequest::default() };
    let added = changed(instance, move |instance| instance.rewire(&ask)).await?;
    Ok((StatusCode::CREATED, added))
}

/// Treatment of the packets of a removed link.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Removal {
    /// Whether it sends its packets, instead of dropping them.
    #[serde(default)]
    drain: bool,
}

/// Removes a {kind} from the running instance.
#[utoipa::path(delete, path = "/v1/{kind}/{name}",
    params(("kind" = String, Path), ("name" = String, Path), Removal),
    responses((status = OK, body = RewireResponse), Refusals))]
async fn remove(
    State(instance): Running,
    method: Method,
    uri: Uri,
    InPath((collection, name)): InPath<(String, String)>,
    InQuery(Removal { drain }): InQuery<Removal>,
) -> Answer<RewireResponse> {
    if Kind::of_collection(&collection) != Some(Kind::Link) {
        return Err(not_allowed(method, uri).await);
    }
    let ask = RewireRequest { remove: vec![name], drain, ..RewireRequest::default() };
    changed(instance, move |instance| instance.rewire(&ask)).await
}

/// Shows a {kind} with its settings and counters.
#[utoipa::path(get, path = "/v1/{kind}/{name}", params(("kind" = String, Path), ("name" = String, Path)),
    responses((status = OK, body = OneObject), Refusals))]
async fn object(
    State(instance): Running,
    uri: Uri,
    InPath((collection, name)): InPath<(String, String)>,
) -> Answer<Object> {
    let Some(kind) = Kind::of_collection(&collection) else { return Err(nothing_there(uri).await) };
    answered(instance, move |instance| instance.object(kind, &name)).await
}

/// Changes a {kind} at one instant, between two batches of packets: all named settings or none; others are
/// kept.
#[utoipa::path(patch, path = "/v1/{kind}/{name}", params(("kind" = String, Path), ("name" = String, Path)),
    request_body = Object, responses((status = OK, description = "The object after the change",
        body = OneObject), Refusals))]
async fn set(
    State(instance): Running,
    uri: Uri,
    InPath((collection, name)): InPath<(String, String)>,
    scope: Option<Extension<Scope>>,
    Body(changes): Body<Changes>,
) -> Answer<Object> {
    let Some(kind) = Kind::of_collection(&collection) else { return Err(nothing_there(uri).await) };
    let outside = changes.key_of_file_outside().filter(|_| scope.is_some_and(|its| its.0 < Scope::Install));
    if let Some(key) = outside {
        let detail = "a file outside the scenario's folder needs the scope install";
        return Err(Problem::new(StatusCode::FORBIDDEN, detail).at_key(key));
    }
    let Changes(changes) = changes;
    changed(instance, move |instance| instance.set(kind, &name, &changes)).await
}

/// Lists a router's routes, including those to its own networks; of very many the first.
#[utoipa::path(get, path = "/v1/routers/{router}/routes", params(("router" = String, Path)),
    responses((status = OK, body = RoutePage), Refusals))]
async fn router_routes(State(instance): Running, InPath(router): InPath<String>) -> Answer<RoutePage> {
    answered(instance, move |instance| instance.routes(&router)).await
}

/// Shows the running instance as a scenario.
#[utoipa::path(get, path = "/v1/scenario", responses((status = OK, body = ScenarioText), Refusals))]
async fn scenario(State(instance): Running) -> Answer<ScenarioText> {
    answered(instance, |instance| Ok(ScenarioText { toml: instance.scenario()? })).await
}

/// Applies a scenario to the running instance with the fewest changes, and lists them. Links, sources and
/// media change at one instant; objects without differences are not touched.
#[utoipa::path(put, path = "/v1/scenario", request_body = ScenarioRequest,
    responses((status = OK, body = Comparison), Refusals))]
async fn apply(State(instance): Running, Body(wanted): Body<ScenarioRequest>) -> Answer<Comparison> {
    changed(instance, move |instance| instance.apply(&wanted)).await
}

/// Lists the differences between the running instance and a scenario. Mistakes of the scenario are shown to
/// the scope `install` only.
#[utoipa::path(post, path = "/v1/scenario/differences", request_body = ScenarioText,
    responses((status = OK, body = Comparison), Refusals))]
async fn compare(State(instance): Running, Body(text): Body<ScenarioText>) -> Answer<Comparison> {
    answered(instance, move |instance| instance.compare(&text.toml)).await
}

/// Adds sections to the running scenario, and removes links and hosts from it, at one instant: all or none.
#[utoipa::path(patch, path = "/v1/scenario", request_body = RewireRequest,
    responses((status = OK, body = RewireResponse), Refusals))]
async fn rewire(State(instance): Running, Body(ask): Body<RewireRequest>) -> Answer<RewireResponse> {
    changed(instance, move |instance| instance.rewire(&ask)).await
}

/// Links with separate series.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Series {
    /// A link, or a pattern such as dsl*. Default: none, and links are sums.
    links: Option<String>,
    /// Number of links: at most 1000.
    #[serde(default = "default_limit")]
    #[param(default = 100, maximum = 1000)]
    limit: usize,
}

fn default_limit() -> usize {
    100
}

/// Shows counters in the text format of OpenMetrics, for Prometheus.
#[utoipa::path(get, path = "/metrics", params(Series),
    responses((status = OK, body = String, content_type = "application/openmetrics-text"), Refusals))]
async fn metrics(
    State(instance): Running,
    InQuery(Series { links, limit }): InQuery<Series>,
) -> Result<impl IntoResponse, Problem> {
    if limit > MAX_LINKS {
        let what = format!("at most {MAX_LINKS} links have series of their own");
        return Err(Problem::of_value("limit", &what));
    }
    let text = answered(instance, move |instance| instance.metrics(links.as_deref(), limit));
    let Json(text) = text.await?;
    Ok(([(header::CONTENT_TYPE, OPEN_METRICS)], text))
}

/// Refuses methods that a path does not take, and names those that it does (RFC 9110, section 15.5.6). The
/// usual ones are not looked up before: the list is made from the whole document, which takes milliseconds.
async fn of_known_methods(request: Request, next: Next) -> Response {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let takes = |taken: &str| taken.split(", ").any(|known| method == known);
    let is_usual = [Method::GET, Method::HEAD, Method::PATCH].contains(&method);
    if is_usual || METHODS.of_path(uri.path()).is_none_or(takes) {
        let answer = next.run(request).await;
        if answer.status() != StatusCode::METHOD_NOT_ALLOWED {
            return answer;
        }
    }
    let taken = METHODS.of_path(uri.path()).unwrap_or_default();
    ([(header::ALLOW, taken)], not_allowed(method, uri).await).into_response()
}

/// The answer to a path that there is not.
pub(crate) async fn nothing_there(uri: Uri) -> Problem {
    let detail = format!("there is no {}; /v1/openapi.json lists what there is", uri.path());
    Problem::new(StatusCode::NOT_FOUND, detail)
}

/// The answer to a method that a path does not take, or to a path of no kind of objects.
async fn not_allowed(method: Method, uri: Uri) -> Problem {
    if METHODS.of_path(uri.path()).is_none() {
        return nothing_there(uri).await;
    }
    let detail = format!("{} does not take {method}; /v1/openapi.json lists what it takes", uri.path());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Quantity;

    fn settable(key: &str) -> AllSettable {
        let one = Settable::new(key, "a help", "a text".into(), Quantity::Other);
        Kind::ALL.map(|_| vec![one.clone()])
    }

    #[test]
    fn all_that_read_the_document_share_one() {
        let document = WrittenDocument(Mutex::new(None));
        let [first, again, other] =
            ["one-key", "one-key", "other-key"].map(|key| document.of(settable(key)).unwrap().0);
        assert_eq!(first.as_ptr(), again.as_ptr());
        let has = |text: &[u8], key: &str| String::from_utf8_lossy(text).contains(&format!("\"{key}\":"));
        assert!(has(&first, "one-key") && has(&other, "other-key") && !has(&other, "one-key"));
    }
}
