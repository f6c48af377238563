//! Server of the API and the dashboard on a TCP address of this machine.
//!
//! Every user of the machine, and every page in a browser on it, can reach such an address. Requests must
//! name the machine itself as their host, so that foreign names that resolve to it are refused (DNS
//! rebinding), and changes must be JSON and come from the server's own pages.
//!
//! With tokens, requests must bear one instead, which no foreign page has, and any address is allowed.

use crate::instance::Instance;
use crate::problem::Problem;
use crate::requests::says_json;
use crate::service::{Service, runtime};
use crate::tokens::Tokens;
use crate::{dashboard, routes};
use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;
use thiserror::Error;
use tokio::net::TcpListener;

/// The default address, if it is free.
const USUAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8399);

/// The address of a web server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WebAddress {
    /// On 127.0.0.1: port 8399, or another one if that is taken.
    #[default]
    Usual,
    /// On this address; port 0 is any free port.
    At(SocketAddr),
}

impl WebAddress {
    /// The address with a port that many higher; port 0 stays.
    ///
    /// # Errors
    /// If there is no such port.
    pub fn behind(self, ports: u16) -> Result<Self, WebError> {
        let address = match self {
            _ if ports == 0 => return Ok(self),
            Self::Usual => USUAL,
            Self::At(address) if address.port() == 0 => return Ok(self),
            Self::At(address) => address,
        };
        let port = u32::from(address.port()) + u32::from(ports);
        let none = |_| WebError::Malformed(format!("{}:{port}", address.ip()));
        Ok(Self::At(SocketAddr::new(address.ip(), u16::try_from(port).map_err(none)?)))
    }
}

/// Configuration of a web server.
#[derive(Debug, Clone, Default)]
pub struct Web {
    /// Its address.
    pub address: WebAddress,
    /// The tokens that it requires. Without tokens it listens only on loopback addresses.
    pub tokens: Option<Arc<Tokens>>,
}

impl Web {
    /// Checks that other machines can't reach the address, or need a token.
    ///
    /// # Errors
    /// If they can without a token.
    pub fn check(&self) -> Result<(), WebError> {
        match self.address {
            WebAddress::At(address) if !address.ip().is_loopback() && self.tokens.is_none() => {
                Err(WebError::Reachable(address.ip()))
            }
            _ => Ok(()),
        }
    }
}

impl From<WebAddress> for Web {
    fn from(address: WebAddress) -> Self {
        Self { address, tokens: None }
    }
}

/// Failure to start a web server.
#[derive(Debug, Error)]
pub enum WebError {
    /// Not an address.
    #[error("\"{0}\" is not an address; write a port, or an address and a port such as 127.0.0.1:8399")]
    Malformed(String),
    /// An address that other machines can reach.
    #[error(
        "{0} is not an address of this machine alone; use 127.0.0.1, [::1] or localhost, or serve --tokens"
    )]
    Reachable(IpAddr),
    /// Listening on the address failed.
    #[error("can't listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The server's thread can't be started.
    #[error("can't start the thread of the web server: {0}")]
    Thread(io::Error),
}

impl FromStr for WebAddress {
    type Err = WebError;

    /// Parses `8399`, `127.0.0.1:8399`, `[::1]:8399` or `localhost:8399`.
    fn from_str(text: &str) -> Result<Self, WebError> {
        let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let malformed = || WebError::Malformed(text.into());
        let port = text.strip_prefix("localhost:").unwrap_or(text);
        let address = port.parse().map(local).or_else(|_| text.parse::<SocketAddr>());
        address.map(Self::At).map_err(|_| malformed())
    }
}

/// The API and the dashboard of a running instance on a TCP address. Dropping it ends the server.
#[derive(Debug)]
pub struct WebServer {
    address: SocketAddr,
    _service: Service,
}

impl WebServer {
    /// Serves `instance`.
    ///
    /// # Errors
    /// If other machines can reach the address without a token, or listening fails.
    pub fn start(web: Web, instance: Arc<dyn Instance>) -> Result<Self, WebError> {
        web.check()?;
        let Web { address, tokens } = web;
        let runtime = runtime().map_err(WebError::Thread)?;
        let listener = runtime.block_on(listen(address))?;
        let failed = |source| WebError::Listen { address: USUAL, source };
        let address = listener.local_addr().map_err(failed)?;
        let service = Service::start("longwire-web", runtime, listener, router(instance, tokens));
        Ok(Self { address, _service: service.map_err(WebError::Thread)? })
    }

    /// The address on which it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn listen(address: WebAddress) -> Result<TcpListener, WebError> {
    let bind = async |address: SocketAddr| {
        TcpListener::bind(address).await.map_err(|source| WebError::Listen { address, source })
    };
    match address {
        WebAddress::At(address) => bind(address).await,
        WebAddress::Usual => match bind(USUAL).await {
            Err(WebError::Listen { source, .. }) if source.kind() == io::ErrorKind::AddrInUse => {
                bind(SocketAddr::new(USUAL.ip(), 0)).await
            }
            bound => bound,
        },
    }
}

/// The API and the dashboard, behind the checks that browsers make necessary.
fn router(instance: Arc<dyn Instance>, tokens: Option<Arc<Tokens>>) -> Router {
    let checks = from_fn(move |request, next| checked(tokens.clone(), request, next));
    routes::router(instance).merge(dashboard::router()).layer(checks)
}

/// Headers of every answer: pages run only their own scripts, and other pages can't embed or read them.
const HEADERS: [(HeaderName, &str); 5] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

async fn checked(tokens: Option<Arc<Tokens>>, request: Request, next: Next) -> Response {
    let mut answer = match check(tokens.as_deref(), &request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    if answer.status() == StatusCode::UNAUTHORIZED {
        answer.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    for (name, value) in HEADERS {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// Checks whether a request is allowed.
fn check(tokens: Option<&Tokens>, request: &Request) -> Result<(), Box<Problem>> {
    let (method, headers) = (request.method(), request.headers());
    match tokens {
        // A page of another origin has no token.
        Some(tokens) => tokens.check(method, request.uri().path(), headers)?,
        None => check_origin(method, headers)?,
    }
    // A form on another page could send these; for other methods a browser asks first.
    if [Method::POST, Method::PUT, Method::PATCH].contains(method) && !says_json(headers) {
        let detail = "send changes with Content-Type: application/json";
        return Err(Box::new(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail)));
    }
    Ok(())
}

/// Checks that a request comes from this machine, and not from a page of another origin.
fn check_origin(method: &Method, headers: &HeaderMap) -> Result<(), Box<Problem>> {
    let refused = |status, detail: String| Err(Box::new(Problem::new(status, detail)));
    let text = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or("?"));
    let host = text(header::HOST).unwrap_or("");
    if headers.get_all(header::HOST).iter().count() != 1 || !is_own_host(host) {
        let detail = format!("\"{host}\" is not this machine: use 127.0.0.1, [::1] or localhost");
        return refused(StatusCode::FORBIDDEN, detail);
    }
    if [Method::GET, Method::HEAD].contains(method) {
        return Ok(());
    }
    let foreign_origin = text(header::ORIGIN).is_some_and(|origin| origin != format!("http://{host}"));
    let site = text(HeaderName::from_static("sec-fetch-site"));
    if foreign_origin || site.is_some_and(|site| site != "same-origin" && site != "none") {
        let detail = "a page of another origin can't change anything here";
        return refused(StatusCode::FORBIDDEN, detail.into());
    }
    Ok(())
}

/// Whether a host header names this machine. Its port may be that of a tunnel.
fn is_own_host(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        _ => host,
    };
    let ip = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || ip.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_this_machine() {
        let read = |text: &str| text.parse::<WebAddress>().map_err(|error| error.to_string());
        let at = |text: &str| Ok(WebAddress::At(text.parse().unwrap()));
        assert_eq!(read("9000"), at("127.0.0.1:9000"));
        assert_eq!(read("localhost:9000"), at("127.0.0.1:9000"));
        assert_eq!(read("127.3.2.1:80"), at("127.3.2.1:80"));
        assert_eq!(read("[::1]:80"), at("[::1]:80"));
        for text in ["0.0.0.0:80", "[::]:80", "192.0.2.1:80"] {
            let web = Web::from(read(text).unwrap());
            assert!(web.check().unwrap_err().to_string().contains("this machine alone"), "{text}");
        }
        for text in ["", "example.org:80", "127.0.0.1", "70000", "localhost"] {
            assert!(read(text).unwrap_err().contains("not an address"), "{text}");
        }
    }

    #[test]
    fn ports_follow_each_other() {
        let at = |text: &str| text.parse::<WebAddress>().unwrap();
        assert_eq!(at("9000").behind(2).unwrap(), at("9002"));
        assert_eq!(at("0").behind(2).unwrap(), at("0"));
        assert_eq!(WebAddress::Usual.behind(1).unwrap(), at("8400"));
        assert_eq!(at("65535").behind(0).unwrap(), at("65535"));
        assert!(at("65535").behind(1).is_err());
    }

    #[test]
    fn hosts_are_this_machine_or_refused() {
        for host in ["localhost", "LOCALHOST:8399", "127.0.0.1:1", "127.1.2.3", "[::1]:8399", "[::1]"] {
            assert!(is_own_host(host), "{host}");
        }
        for host in
            ["", "example.org", "localhost.example.org:8399", "192.0.2.1", "[::2]:80", "127.0.0.1.x", ":80"]
        {
            assert!(!is_own_host(host), "{host}");
        }
    }
}
