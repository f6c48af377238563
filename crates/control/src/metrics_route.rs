//! The endpoint that Prometheus scrapes.

#![allow(
    unused_qualifications,
    reason = "`utoipa::path` writes the full paths of the types that it is given"
)]

use crate::instance::Instance;
use crate::problem::{Problem, Refusals};
use crate::requests::{InQuery, Running, answered};
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Most links with separate series.
const MAX_LINKS: usize = 1000;
/// The format of OpenMetrics 1.0.
const FORMAT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The endpoint.
pub(crate) fn described() -> OpenApiRouter<Arc<dyn Instance>> {
    OpenApiRouter::new().routes(routes!(metrics))
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
        let what = format!("limit: at most {MAX_LINKS} links have series of their own");
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, what).at_key("limit"));
    }
    let text = answered(instance, move |instance| instance.metrics(links.as_deref(), limit));
    let Json(text) = text.await?;
    Ok(([(header::CONTENT_TYPE, FORMAT)], text))
}
