"""Certificates for tests, made with openssl(1) on the spot."""

import subprocess
import time


def authority(directory, name="ca"):
    """DIR/NAME.crt and .key, valid a year."""
    run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "365", "-subj", f"/CN={name}",
        "-keyout", directory / f"{name}.key", "-out", directory / f"{name}.crt")


def issue(directory, name, ca="ca", san="DNS:localhost,IP:127.0.0.1", lasts_s=86400, age_s=3600):
    """DIR/NAME.crt and .key, signed by the authority: of that age already, and for so long from now on."""
    run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}", "-keyout", directory / f"{name}.key",
        "-out", directory / f"{name}.csr")
    (directory / f"{name}.ext").write_text(f"subjectAltName={san}\nextendedKeyUsage=serverAuth\n")
    (directory / "index").write_text("")
    (directory / "index.attr").write_text("unique_subject = no\n")
    (directory / f"{name}.cnf").write_text(CONFIG.format(directory=directory))
    run("ca", "-batch", "-config", directory / f"{name}.cnf", "-rand_serial", "-notext", "-cert", directory / f"{ca}.crt", "-keyfile", directory / f"{ca}.key",
        "-in", directory / f"{name}.csr", "-extfile", directory / f"{name}.ext", "-out", directory / f"{name}.crt",
        "-startdate", stamp(-age_s), "-enddate", stamp(lasts_s))


CONFIG = """[ca]
default_ca = d
[d]
database = {directory}/index
new_certs_dir = {directory}
default_md = sha256
serial = {directory}/serial
policy = p
[p]
commonName = supplied
"""


def stamp(seconds):
    return time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + seconds))


def run(*argv):
    subprocess.run(["openssl", *map(str, argv)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
