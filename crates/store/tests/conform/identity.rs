//! Credentials that come from elsewhere: a token exchanged at AWS's token service, and those of the
//! instance. By moto, which checks signatures and what roles allow once it was set up (those of
//! listings otherwise than S3, so that only a film is read here).

use crate::clouds::with;
use crate::nginx::Nginx;
use crate::real::folder;
use crate::servers::{Process, ask, brought, ports, send, skip, start};
use crate::suite::{bytes, key};
use std::process::Command;
use store::{Error, Reason, Store};

/// Requests that set it up; the instance's own, to have credentials of its role; and the exchange of
/// the token, which nobody signs.
const UNSIGNED: usize = 4 + 1 + 1;

/// What leads a request to the token service there.
const STS: &str = "AWS4-HMAC-SHA256 Credential=x/20200101/us-east-1/sts/aws4_request, SignedHeaders=host, Signature=x";

fn aws() -> Option<(u16, Process)> {
    let [port] = ports(1)[..] else { return None };
    let mut command = Command::new(brought("sts/bin/moto_server")?);
    command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
    command.env("INITIAL_NO_AUTH_ACTION_COUNT", UNSIGNED.to_string());
    Some((port, start(port, &mut command)?))
}

/// A role that may read, and a film.
fn set_up(port: u16) {
    let must = |method: &str, path: &str, head: &str, body: &[u8]| {
        let status = send(port, method, path, head, body);
        assert!(matches!(status, Ok(200)), "{method} {path}: {status:?}");
    };
    // It is told by its scope to which service a request goes.
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
    must("PUT", "/films/film.mp4", "", &bytes("film.mp4"));
}

#[test]
fn a_web_identity_is_exchanged_and_an_instance_asked() {
    let Some((port, _server)) = aws() else {
        return skip("no AWS token service: run scripts/storage.sh");
    };
    set_up(port);
    // What nobody signs comes first: all after it is checked.
    let of_instance = of_the_role(port);
    a_web_identity_is_exchanged(port);
    an_instance_is_asked(port, &of_instance);
}

fn reads(store: &Store) {
    let film = store.open(&key("film.mp4")).unwrap();
    let read = film.read(1_000_000..1_500_000, Reason::Index).unwrap();
    assert!(read == bytes("film.mp4")[1_000_000..1_500_000]);
}

/// Credentials of the role, as an instance of it has them: what its metadata service would say.
fn of_the_role(port: u16) -> String {
    let head =
        format!("Authorization: {STS}\r\nContent-Type: application/x-www-form-urlencoded\r\n");
    let body = "Version=2011-06-15&Action=AssumeRole&RoleSessionName=instance\
                &RoleArn=arn:aws:iam::123456789012:role/reader";
    let answer = ask(port, "POST", "/", &head, body.as_bytes()).unwrap();
    let said = |name: &str| {
        let (_, rest) = answer.split_once(&format!("<{name}>"))?;
        Some(rest.split_once('<')?.0.to_owned())
    };
    let [id, secret, token] = ["AccessKeyId", "SecretAccessKey", "SessionToken"]
        .map(|name| said(name).unwrap_or_else(|| panic!("no {name}: {answer}")));
    format!(
        "{{\"AccessKeyId\":\"{id}\",\"SecretAccessKey\":\"{secret}\",\"Token\":\"{token}\",\
         \"Expiration\":\"2099-01-01T00:00:00Z\"}}"
    )
}

/// A metadata service (its second version, which asks for a token of its own first) that an nginx
/// plays; the credentials it tells are moto's, which checks what is signed with them.
fn an_instance_is_asked(port: u16, credentials: &str) {
    let dir = folder();
    let at = format!("http://127.0.0.1:{port}");
    let roles = "/latest/meta-data/iam/security-credentials/";
    let told = "if ($http_x_aws_ec2_metadata_token != of-this-hour) { return 401; }";
    let service = format!(
        "location = /latest/api/token {{ return 200 of-this-hour; }}
         location = {roles} {{ {told} return 200 reader; }}
         location = {roles}reader {{ {told} return 200 '{credentials}'; }}"
    );
    let place = [("aws_endpoint_url", &*at), ("aws_region", "us-east-1")];
    let Some(nginx) = Nginx::of(dir.path(), dir.path(), "", &service) else {
        return;
    };
    let metadata = nginx.url("");
    let instance = [("aws_metadata_endpoint", metadata.trim_end_matches('/'))];
    reads(&Store::new("s3://films", with(&[&place[..], &instance].concat())).unwrap());

    // Those of moto's own metadata are nobody's, and so they are refused.
    let instance = [("aws_metadata_endpoint", &*at)];
    let store = Store::new("s3://films", with(&[&place[..], &instance].concat())).unwrap();
    let error = store.open(&key("film.mp4")).err().unwrap();
    let text = error.to_string();
    assert!(matches!(error, Error::Denied(_)), "{text}");
    assert!(text.contains("403 Invalid"), "{text}");
}

fn a_web_identity_is_exchanged(port: u16) {
    let dir = folder();
    let token = dir.path().join("token");
    std::fs::write(&token, "a token of the cluster").unwrap();
    let at = format!("http://127.0.0.1:{port}");
    // moto tells an unsigned request's service by its body, and this one has none.
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
    let store = Store::new("s3://films", with(&[&place[..], &web].concat())).unwrap();
    reads(&store);

    // Without a token there is nothing to exchange.
    std::fs::remove_file(&token).unwrap();
    let store = Store::new("s3://films", with(&[&place[..], &web].concat())).unwrap();
    let error = store.open(&key("film.mp4")).err().unwrap();
    let text = error.to_string();
    assert!(text.contains("credentials for the storage"), "{text}");
}
