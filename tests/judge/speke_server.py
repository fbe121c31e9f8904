"""A SPEKE key server made of pycpix: it parses each request, chooses keys, and encrypts them for the certificate of
the request. It prints its URL, and then a line of JSON for each request. Run it with the Python of target/cpix."""
import json
import sys
import warnings
from base64 import b64decode, b64encode
from http.server import BaseHTTPRequestHandler, HTTPServer

warnings.filterwarnings("ignore")
import cpix  # noqa: E402
from Crypto.Cipher import AES, PKCS1_OAEP  # noqa: E402
from Crypto.Hash import HMAC, SHA512  # noqa: E402
from Crypto.PublicKey import RSA  # noqa: E402
from Crypto.Random import get_random_bytes  # noqa: E402
from Crypto.Util.Padding import pad  # noqa: E402
from cpix.drm import widevine  # noqa: E402
from lxml import etree  # noqa: E402

CPIX = "{urn:dashif:org:cpix}"
CERTIFICATE = ".//{http://www.w3.org/2000/09/xmldsig#}X509Certificate"
WIDEVINE = "edef8ba9-79d6-4ace-a3c8-27dcd51d21ed"
# CPIX 2.4 calls the multivariant playlist by another name.
VERSIONS = {"2.0": ("2.3", "master"), "2.1": ("2.4", "multiVariant")}


def text(data):
    return str(b64encode(data), "ascii")


def schema_errors(root, multivariant):
    """Returns the errors by pycpix's schema, which is the one of CPIX 2.2."""
    root = etree.fromstring(etree.tostring(root))
    for key in root.iter(CPIX + "ContentKey"):
        # New in CPIX 2.3.
        key.attrib.pop("commonEncryptionScheme")
    for data in root.iter(CPIX + "DeliveryData"):
        # SPEKE requests leave it to the key server.
        data.append(etree.Element(CPIX + "DocumentKey"))
    for signal in root.iter(CPIX + "HLSSignalingData"):
        if signal.get("playlist") == multivariant:
            signal.set("playlist", "master")
    cpix.CPIX_SCHEMA.validate(root)
    return [str(error) for error in cpix.CPIX_SCHEMA.error_log]


class Recipient:
    """Encrypts values for a certificate (CPIX 2.3, 4.4)."""

    def __init__(self, certificate):
        self.certificate = certificate
        self.rsa = PKCS1_OAEP.new(RSA.import_key(b64decode(certificate)))
        self.document_key = get_random_bytes(32)
        self.mac_key = get_random_bytes(64)

    def delivery_data(self):
        return cpix.DeliveryData(
            delivery_key=cpix.DeliveryKey(self.certificate),
            document_key=cpix.DocumentKey(text(self.rsa.encrypt(self.document_key))),
            mac_method=cpix.MACMethod(text(self.rsa.encrypt(self.mac_key))),
        )

    def encrypt(self, value):
        iv = get_random_bytes(16)
        data = iv + AES.new(self.document_key, AES.MODE_CBC, iv).encrypt(pad(value, 16))
        return text(data), text(HMAC.new(self.mac_key, data, SHA512).digest())


def respond(body, versions):
    """Returns the response, and what is printed."""
    version, multivariant = versions
    root = etree.fromstring(body)
    certificate = root.findtext(CERTIFICATE)
    errors = schema_errors(root, multivariant)
    # pycpix requires the document key of delivery data.
    for data in root.findall(CPIX + "DeliveryDataList"):
        root.remove(data)
    request = cpix.CPIX.parse(root)
    errors += request.validate_content()[1]
    recipient = Recipient(certificate) if certificate else None
    response = cpix.CPIX(content_id=request.content_id, version=version)
    if recipient:
        response.delivery_datas.append(recipient.delivery_data())
    keys = {}
    for key in request.content_keys:
        value = get_random_bytes(16)
        keys[key.kid.hex] = value.hex()
        cek, mac = recipient.encrypt(value) if recipient else (text(value), None)
        response.content_keys.append(cpix.ContentKey(
            kid=key.kid, cek=cek, common_encryption_scheme=key.common_encryption_scheme,
            explicit_iv=key.explicit_iv, value_mac=mac))
    pssh = {}
    for system in request.drm_systems:
        if str(system.system_id) == WIDEVINE:
            scheme = request.content_keys[0].common_encryption_scheme
            box = widevine.generate_pssh(key_ids=[system.kid.hex], provider="judge", protection_scheme=scheme, version=0)
            pssh[system.kid.hex] = text(box)
            response.drm_systems.append(cpix.DRMSystem(kid=system.kid, system_id=system.system_id, pssh=text(box)))
    for rule in request.usage_rules:
        response.usage_rules.append(rule)
    written = etree.tostring(response.element(), xml_declaration=True, encoding="UTF-8")
    seen = {
        "errors": errors, "keys": keys, "pssh": pssh, "contentId": request.content_id, "version": request.version,
        "schemes": [key.common_encryption_scheme for key in request.content_keys],
        "rules": [[rule.kid.hex, rule.intended_track_type] for rule in request.usage_rules],
        "certificate": certificate,
    }
    return written, seen


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        speke = self.headers["X-Speke-Version"]
        written, seen = respond(body, VERSIONS[speke])
        seen["headers"] = {name.lower(): value for name, value in self.headers.items()}
        self.send_response(200)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(written)))
        self.send_header("X-Speke-Version", speke)
        self.send_header("X-Speke-User-Agent", "pycpix")
        self.end_headers()
        self.wfile.write(written)
        print(json.dumps(seen), flush=True)

    def log_message(self, *args):
        pass


server = HTTPServer(("127.0.0.1", 0), Handler)
print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
