//! Credentials from AWS services. The token service exchanges a web identity token for credentials.
//! The metadata service returns the credentials of an instance. moto emulates these services, and
//! checks signatures and the permissions of roles. The tests only read a film, because moto checks
//! the signatures of listings differently from S3.

use crate::clouds::options_with;
use crate::nginx::Nginx;
use crate::real_servers::create_folder;
use crate::servers::{
    Process, download_server, fetch_response, free_ports, request_status, skip_server, start_server,
};
use crate::suite::{object_bytes, parse_key};
use std::process::Command;
use store::{Error, RequestReason, Store};

/// Number of requests that moto accepts without a valid signature. Four requests create the role
/// and the film, one request gets the instance's credentials, and one request exchanges the web
/// identity token.
const UNSIGNED: usize = 4 + 1 + 1;

/// An `Authorization` field whose credential scope makes moto route a request to its token service.
const STS: &str = "AWS4-HMAC-SHA256 Credential=x/20200101/us-east-1/sts/aws4_request, SignedHeaders=host, Signature=x";

fn start_moto() -> Option<(u16, Process)> {
    let [port] = free_ports(1)[..] else {
        return None;
    };
    let mut command = Command::new(download_server("sts/bin/moto_server")?);
    command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
    command.env("INITIAL_NO_AUTH_ACTION_COUNT", UNSIGNED.to_string());
    Some((port, start_server(port, &mut command)?))
}

/// Creates a role with read access, and stores a film.
fn create_role_and_film(port: u16) {
    let must = |method: &str, path: &str, head: &str, body: &[u8]| {
        let status = request_status(port, method, path, head, body);
        assert!(matches!(status, Ok(200)), "{method} {path}: {status:?}");
    };
    // moto routes a request to a service by the credential scope in the `Authorization` field.
    let iam = "Authorization: AWS4-HMAC-SHA256 Credential=x/20200101/us-east-1/iam/aws4_request, \
               SignedHeaders=host, Signature=x\r\n\
               Content-Type: application/x-www-form-urlencoded\r\n";
    let role = "Version=2010-05-08&RoleName=reader";
    let trust = "AssumeRolePolicyDocument={\"Version\":\"2012-10-17\",\"Statement\":[]}";
    let policy = "PolicyName=read&PolicyDocument={\"Version\":\"2012-10-17\",\"Statement\":[{\
                  \"Effect\":\"Allow\",\"Action\":[\"s3:GetObject\",\"s3:ListBucket\"],\"Resource\":\"*\"}]}";
    let create = format!("Action=CreateRole&{role}&{trust}");
    must("POST", "/", iam, create.as_bytes());
    let allow = format!("Action=PutRolePolicy&{role}&{policy}");
    must("POST", "/", iam, allow.as_bytes());
    must("PUT", "/films", "", b"");
    must("PUT", "/films/film.mp4", "", &object_bytes("film.mp4"));
}

#[test]
fn aws_credentials_come_from_a_web_identity_and_an_instance() {
    let Some((port, _server)) = start_moto() else {
        return skip_server("no AWS token service: run scripts/storage.sh");
    };
    create_role_and_film(port);
    // Unsigned requests come first, because moto checks the signatures of all later requests.
    let of_instance = role_credentials(port);
    check_web_identity(port);
    check_instance_credentials(port, &of_instance);
}

fn check_reads(store: &Store) {
    let film = store.open(&parse_key("film.mp4")).unwrap();
    let read = film
        .read(1_000_000..1_500_000, RequestReason::Index)
        .unwrap();
    assert!(read == object_bytes("film.mp4")[1_000_000..1_500_000]);
}

/// Returns the credentials of the role as JSON, in the format of an instance's metadata service.
fn role_credentials(port: u16) -> String {
    let head =
        format!("Authorization: {STS}\r\nContent-Type: application/x-www-form-urlencoded\r\n");
    let body = "Version=2011-06-15&Action=AssumeRole&RoleSessionName=instance\
                &RoleArn=arn:aws:iam::123456789012:role/reader";
    let response = fetch_response(port, "POST", "/", &head, body.as_bytes()).unwrap();
    let field = |name: &str| {
        let (_, rest) = response.split_once(&format!("<{name}>"))?;
        Some(rest.split_once('<')?.0.to_owned())
    };
    let [id, secret, token] = ["AccessKeyId", "SecretAccessKey", "SessionToken"]
        .map(|name| field(name).unwrap_or_else(|| panic!("no {name}: {response}")));
    format!(
        "{{\"AccessKeyId\":\"{id}\",\"SecretAccessKey\":\"{secret}\",\"Token\":\"{token}\",\
         \"Expiration\":\"2099-01-01T00:00:00Z\"}}"
    )
}

/// Reads a film with the credentials of an instance. An nginx acts as version 2 of the metadata
/// service, which requires a session token. The nginx returns credentials that moto has issued.
/// moto then checks the signatures of the reads.
fn check_instance_credentials(port: u16, credentials: &str) {
    let dir = create_folder();
    let at = format!("http://127.0.0.1:{port}");
    let roles = "/latest/meta-data/iam/security-credentials/";
    let check = "if ($http_x_aws_ec2_metadata_token != of-this-hour) { return 401; }";
    let service = format!(
        "location = /latest/api/token {{ return 200 of-this-hour; }}
         location = {roles} {{ {check} return 200 reader; }}
         location = {roles}reader {{ {check} return 200 '{credentials}'; }}"
    );
    let place = [("aws_endpoint_url", &*at), ("aws_region", "us-east-1")];
    let Some(nginx) = Nginx::of(dir.path(), dir.path(), "", &service) else {
        return;
    };
    let metadata = nginx.url("");
    let instance = [("aws_metadata_endpoint", metadata.trim_end_matches('/'))];
    check_reads(
        &Store::new(
            "s3://films",
            options_with(&[&place[..], &instance].concat()),
        )
        .unwrap(),
    );

    // moto refuses the credentials of its own metadata service, because these credentials belong to
    // no role.
    let instance = [("aws_metadata_endpoint", &*at)];
    let store = Store::new(
        "s3://films",
        options_with(&[&place[..], &instance].concat()),
    )
    .unwrap();
    let error = store.open(&parse_key("film.mp4")).err().unwrap();
    let text = error.to_string();
    assert!(matches!(error, Error::Denied(_)), "{text}");
    assert!(text.contains("403 Invalid"), "{text}");
}

fn check_web_identity(port: u16) {
    let dir = create_folder();
    let token = dir.path().join("token");
    std::fs::write(&token, "a token of the cluster").unwrap();
    let at = format!("http://127.0.0.1:{port}");
    // moto routes an unsigned request by the request's body. The token exchange has no body, so the
    // proxy adds an `Authorization` field whose credential scope names the service `sts`. moto then
    // routes by this scope.
    let sts = format!("location / {{ proxy_pass {at}; proxy_set_header Authorization '{STS}'; }}");
    let Some(nginx) = Nginx::of(dir.path(), dir.path(), "", &sts) else {
        return;
    };
    let sts = nginx.url("");
    let place = [("aws_endpoint_url", &*at), ("aws_region", "us-east-1")];
    let web = [
        ("aws_endpoint_url_sts", &*sts),
        ("aws_role_arn", "arn:aws:iam::123456789012:role/reader"),
        ("aws_web_identity_token_file", token.to_str().unwrap()),
    ];
    let store = Store::new("s3://films", options_with(&[&place[..], &web].concat())).unwrap();
    check_reads(&store);

    // The token exchange fails if the token file is missing.
    std::fs::remove_file(&token).unwrap();
    let store = Store::new("s3://films", options_with(&[&place[..], &web].concat())).unwrap();
    let error = store.open(&parse_key("film.mp4")).err().unwrap();
    let text = error.to_string();
    assert!(text.contains("credentials for the storage"), "{text}");
}
