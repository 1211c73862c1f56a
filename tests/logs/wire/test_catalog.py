"""The catalog server: what its role may execute, and that it can change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from django.conf import settings
from django.db import connection as django_connection

from logs.columns import COLUMNS
from logs.wire import catalog
from logs.wire.statements import read_statement

if TYPE_CHECKING:
    from tests.logs.wire.scene import Scene

#: Functions that depend on more than their arguments, and that the role may execute. Each was looked at: it
#: tells of the catalog, of this session or of the clock, and changes nothing but this session.
REVIEWED = """
aclexplode aclitemin aclitemout age anyarray_out anyarray_recv anyarray_send anycompatiblearray_out
anycompatiblearray_recv anycompatiblearray_send anycompatiblemultirange_in anycompatiblemultirange_out
anycompatiblerange_in anycompatiblerange_out anyenum_out anymultirange_in anymultirange_out anyrange_in
anyrange_out anytextcat areajoinsel areasel array_in array_out array_recv array_send array_to_json
array_to_string array_typanalyze arraycontjoinsel arraycontsel bpcharrecv bpcharsend brin_bloom_summary_recv
brin_bloom_summary_send brin_minmax_multi_summary_recv brin_minmax_multi_summary_send cash_in cash_out
clock_timestamp col_description concat concat_ws contjoinsel contsel convert convert_from convert_to
cstring_recv cstring_send current_database current_schema current_schemas current_setting current_user date
date_add date_cmp_timestamptz date_eq_timestamptz date_ge_timestamptz date_gt_timestamptz date_in
date_le_timestamptz date_lt_timestamptz date_ne_timestamptz date_out date_part date_subtract date_trunc
domain_in domain_recv enum_first enum_in enum_last enum_out enum_range enum_recv enum_send eqjoinsel eqsel
extract format format_type gen_random_uuid generate_series get_current_ts_config getdatabaseencoding
getpgusername has_any_column_privilege has_column_privilege has_database_privilege
has_foreign_data_wrapper_privilege has_function_privilege has_language_privilege has_largeobject_privilege
has_parameter_privilege has_schema_privilege has_sequence_privilege has_server_privilege has_table_privilege
has_tablespace_privilege has_type_privilege iclikejoinsel iclikesel icnlikejoinsel icnlikesel
icregexeqjoinsel icregexeqsel icregexnejoinsel icregexnesel in_range inet_client_addr inet_client_port
interval_in interval_out interval_pl_timestamptz json_agg json_agg_strict json_agg_strict_transfn
json_agg_transfn json_build_array json_build_object json_object_agg json_object_agg_strict
json_object_agg_strict_transfn json_object_agg_transfn json_object_agg_unique json_object_agg_unique_strict
json_object_agg_unique_strict_transfn json_object_agg_unique_transfn json_populate_record
json_populate_recordset json_to_record json_to_recordset json_to_tsvector jsonb_agg jsonb_agg_finalfn
jsonb_agg_strict jsonb_agg_strict_transfn jsonb_agg_transfn jsonb_build_array jsonb_build_object
jsonb_object_agg_finalfn jsonb_object_agg_strict_transfn jsonb_object_agg_transfn
jsonb_object_agg_unique_strict_transfn jsonb_object_agg_unique_transfn jsonb_path_exists_tz
jsonb_path_match_tz jsonb_path_query_array_tz jsonb_path_query_first_tz jsonb_path_query_tz
jsonb_populate_record jsonb_populate_record_valid jsonb_populate_recordset jsonb_to_record
jsonb_to_recordset jsonb_to_tsvector length likejoinsel likesel make_timestamptz matchingjoinsel matchingsel
money multirange_in multirange_out multirange_recv multirange_send multirange_typanalyze multirangesel
mxid_age namerecv namesend neqjoinsel neqsel networkjoinsel networksel nlikejoinsel nlikesel now numeric
obj_description oidvectortypes overlaps pg_advisory_unlock_all pg_available_extension_versions
pg_available_extensions pg_backend_pid pg_basetype pg_char_to_encoding pg_client_encoding pg_collation_for
pg_collation_is_visible pg_column_is_updatable pg_column_size pg_conversion_is_visible pg_cursor
pg_database_size pg_describe_object pg_encoding_to_char pg_extension_update_paths pg_function_is_visible
pg_get_acl pg_get_catalog_foreign_keys pg_get_constraintdef pg_get_expr pg_get_function_arg_default
pg_get_function_arguments pg_get_function_identity_arguments pg_get_function_result pg_get_function_sqlbody
pg_get_functiondef pg_get_indexdef pg_get_keywords pg_get_object_address pg_get_partition_constraintdef
pg_get_partkeydef pg_get_replica_identity_index pg_get_ruledef pg_get_serial_sequence
pg_get_statisticsobjdef pg_get_statisticsobjdef_columns pg_get_statisticsobjdef_expressions
pg_get_triggerdef pg_get_userbyid pg_get_viewdef pg_has_role pg_identify_object
pg_identify_object_as_address pg_index_column_has_property pg_index_has_property pg_indexam_has_property
pg_indexes_size pg_input_error_info pg_input_is_valid pg_is_in_recovery pg_is_other_temp_schema
pg_listening_channels pg_my_temp_schema pg_opclass_is_visible pg_operator_is_visible pg_opfamily_is_visible
pg_options_to_table pg_partition_ancestors pg_partition_tree pg_postmaster_start_time pg_prepared_statement
pg_relation_is_publishable pg_relation_is_updatable pg_relation_size pg_sequence_parameters
pg_settings_get_flags pg_show_all_settings pg_stat_get_live_tuples pg_statistics_obj_is_visible
pg_table_is_visible pg_table_size
pg_timezone_abbrevs_abbrevs pg_timezone_abbrevs_zone pg_timezone_names pg_total_relation_size
pg_ts_config_is_visible pg_ts_dict_is_visible pg_ts_parser_is_visible pg_ts_template_is_visible
pg_type_is_visible pg_typeof phraseto_tsquery plainto_tsquery positionjoinsel positionsel prefixjoinsel
prefixsel quote_literal quote_nullable random random_normal range_in range_out range_recv range_send
range_typanalyze rangesel record_in record_out record_recv record_send regclass regclassin regclassout
regcollationin regcollationout regconfigin regconfigout regdictionaryin regdictionaryout regexeqjoinsel
regexeqsel regexnejoinsel regexnesel regnamespacein regnamespaceout regoperatorin regoperatorout regoperin
regoperout regprocedurein regprocedureout regprocin regprocout regrolein regroleout regtypein regtypeout
row_security_active row_to_json scalargejoinsel scalargesel scalargtjoinsel scalargtsel scalarlejoinsel
scalarlesel scalarltjoinsel scalarltsel session_user setseed shobj_description statement_timestamp
system_user textanycat textrecv textsend time time_in timeofday timestamp timestamp_cmp_timestamptz
timestamp_eq_timestamptz timestamp_ge_timestamptz timestamp_gt_timestamptz timestamp_in
timestamp_le_timestamptz timestamp_lt_timestamptz timestamp_ne_timestamptz timestamp_out timestamptz
timestamptz_cmp_date timestamptz_cmp_timestamp timestamptz_eq_date timestamptz_eq_timestamp
timestamptz_ge_date timestamptz_ge_timestamp timestamptz_gt_date timestamptz_gt_timestamp timestamptz_in
timestamptz_le_date timestamptz_le_timestamp timestamptz_lt_date timestamptz_lt_timestamp
timestamptz_mi_interval timestamptz_ne_date timestamptz_ne_timestamp timestamptz_out timestamptz_pl_interval
timetz timetz_in timezone to_char to_date to_json to_jsonb to_number to_regclass to_regcollation
to_regnamespace to_regoper to_regoperator to_regproc to_regprocedure to_regrole to_regtype to_regtypemod
to_timestamp to_tsquery to_tsvector transaction_timestamp ts_debug ts_headline ts_match_tq ts_match_tt
ts_parse ts_token_type ts_typanalyze tsmatchjoinsel tsmatchsel uuidv4 uuidv7 varcharrecv varcharsend version
websearch_to_tsquery xml xml_in xml_is_well_formed xml_recv xml_send
"""

OBJECTS = (
    *("TABLE x (a int)", "TEMP TABLE x (a int)", "UNLOGGED TABLE x ()", "VIEW x AS SELECT 1", "SCHEMA x"),
    *("SEQUENCE x", "TYPE x AS (a int)", "DOMAIN x AS int", "ROLE x", "DATABASE x", "EXTENSION dblink"),
    *("FUNCTION x() RETURNS int LANGUAGE sql AS 'SELECT 1'", "PROCEDURE x() LANGUAGE sql AS 'SELECT 1'"),
    *("INDEX x ON proxy_logs (day)", "MATERIALIZED VIEW x AS SELECT 1", "TABLESPACE x LOCATION '/tmp'"),
    *("SERVER x FOREIGN DATA WRAPPER y", "FOREIGN DATA WRAPPER x", "PUBLICATION x", 'COLLATION x FROM "C"'),
    *(
        "SUBSCRIPTION x CONNECTION 'host=x' PUBLICATION y",
        "EVENT TRIGGER x ON ddl_command_start EXECUTE FUNCTION y()",
    ),
    *("AGGREGATE x (int) (SFUNC = int4pl, STYPE = int)", "CAST (int AS text) WITHOUT FUNCTION", "LANGUAGE x"),
    *(
        "OPERATOR x (FUNCTION = y)",
        "POLICY x ON proxy_logs",
        "RULE x AS ON SELECT TO proxy_logs DO INSTEAD NOTHING",
    ),
    *("STATISTICS x ON day, host FROM proxy_logs", "TEXT SEARCH CONFIGURATION x (COPY = english)", "USER x"),
    *("TRIGGER x BEFORE INSERT ON proxy_logs EXECUTE FUNCTION y()", "ACCESS METHOD x TYPE INDEX HANDLER y"),
)
WRITES = (
    *(f"CREATE {what}" for what in OBJECTS),
    *(f"CREATE OR REPLACE {what}" for what in OBJECTS),
    *(
        f"{verb} {what}"
        for verb in ("DROP", "ALTER")
        for what in (" ".join(one.split()[:2]) for one in OBJECTS)
    ),
    *(
        f"{verb} proxy_logs"
        for verb in ("TRUNCATE", "DROP TABLE", "ANALYZE", "VACUUM", "CLUSTER", "LOCK TABLE")
    ),
    *(f"REINDEX {what}" for what in ("TABLE proxy_logs", "DATABASE x", "SYSTEM x")),
    *("INSERT INTO proxy_logs DEFAULT VALUES", "UPDATE proxy_logs SET day = 'x'", "DELETE FROM proxy_logs"),
    *(
        "WITH x AS (DELETE FROM proxy_logs RETURNING 1) SELECT 1",
        "SELECT 1 INTO x",
        "SELECT 1 AS a INTO TEMP x",
    ),
    *(
        "MERGE INTO proxy_logs USING proxy_logs p ON true WHEN MATCHED THEN DELETE",
        "COPY proxy_logs FROM STDIN",
    ),
    *("COPY pg_class TO '/tmp/x'", "COPY pg_class TO PROGRAM 'id'", "COPY proxy_logs FROM '/etc/passwd'"),
    *("SELECT * FROM pg_class FOR UPDATE", "UPDATE pg_class SET relname = 'x'", "DELETE FROM pg_description"),
    *("INSERT INTO pg_description VALUES (1, 1, 1, 'x')", "UPDATE pg_database SET datname = 'x'"),
    *(
        "COMMENT ON TABLE proxy_logs IS 'x'",
        "COMMENT ON ROLE CURRENT_USER IS 'x'",
        "SECURITY LABEL ON ROLE x IS 'y'",
    ),
    *(
        "GRANT SELECT ON proxy_logs TO PUBLIC",
        "REVOKE ALL ON proxy_logs FROM PUBLIC",
        "GRANT pg_read_all_data TO x",
    ),
    *("ALTER SYSTEM SET work_mem = '1GB'", "ALTER ROLE CURRENT_USER SET work_mem = '1GB'", "CHECKPOINT"),
    *("ALTER ROLE CURRENT_USER PASSWORD 'x'", "ALTER USER CURRENT_USER VALID UNTIL '2000-01-01'"),
    *("ALTER DATABASE postgres SET work_mem = '1GB'", "DROP OWNED BY CURRENT_USER", "LOAD 'x'", "NOTIFY x"),
    *(
        "REASSIGN OWNED BY CURRENT_USER TO x",
        "LISTEN x",
        "DO 'BEGIN END'",
        "CALL x()",
        "IMPORT FOREIGN SCHEMA x",
    ),
    *("UPDATE pg_settings SET setting = 'on' WHERE name = 'jit'",),
    *(
        "SAVE x",
        "ATTACH x",
        "SET x.y = 1",
        "SET SESSION AUTHORIZATION DEFAULT",
        "ALTER ROLE ALL SET jit = on",
    ),
    *(
        "SET ROLE postgres",
        "SET SESSION AUTHORIZATION postgres",
        "SET work_mem = '1GB'",
        "SET LOCAL temp_buffers = 1",
    ),
    *("SET temp_file_limit = -1", "SET SESSION maintenance_work_mem = '1GB'", "SET \"work_mem\" TO '1GB'"),
    *("SET client_encoding = 'SJIS'", "SET NAMES 'BIG5'", "SET standard_conforming_strings = off"),
    *(
        "PREPARE TRANSACTION 'x'",
        "COMMIT PREPARED 'x'",
        "ROLLBACK PREPARED 'x'",
        "REFRESH MATERIALIZED VIEW x",
    ),
    *(
        "PREPARE x AS DELETE FROM proxy_logs",
        "EXPLAIN ANALYZE DELETE FROM proxy_logs",
        "DECLARE x CURSOR FOR DELETE",
    ),
)
#: What PostgreSQL lets a role do to itself, or only warns of. The port refuses them.
OF_ITSELF = (
    *("ALTER ROLE CURRENT_USER", "ALTER USER CURRENT_USER", "DROP OWNED", "LISTEN", "NOTIFY", "ANALYZE"),
    "SET ",
)
#: Statements that would hide another one, if texts were cut otherwise than PostgreSQL does.
HIDING = (
    "SELECT E'a'\n'b\\'' ; ALTER ROLE CURRENT_USER SET jit = on; -- '",
    "SELECT 1 AS a€$b$ ; ALTER ROLE CURRENT_USER SET jit = on; SELECT $b$ AS a€$b$",
    "SELECT '\\'; ALTER ROLE CURRENT_USER SET jit = on; --'",
    *(f"SELECT 1 AS a{space}" for space in ("\xa0", "\x85", "\u2003", "\u3000", "\x1c")),
    "/* /* */ SELECT 1 */ ALTER ROLE CURRENT_USER SET jit = on",
    "SELECT $$a$$; ALTER ROLE CURRENT_USER SET jit = on",
    "SELECT 1 --\n; ALTER ROLE CURRENT_USER SET jit = on",
    "SELECT 1 --\r; ALTER ROLE CURRENT_USER SET jit = on",
    'SELECT 1 AS "a""b"; ALTER ROLE CURRENT_USER SET jit = on',
)


def state_of(scene: Scene) -> list[Any]:
    """Return what no client may change. Tests beside this one make databases and roles of their own."""
    with scene.connect_past() as connection:
        catalogs = (
            "pg_class",
            "pg_proc",
            "pg_type",
            "pg_namespace",
            "pg_description",
        )
        own = "= current_database() OR {0} NOT LIKE 'test%'".format
        counts = [connection.execute(f"SELECT count(*) FROM {name}").fetchone() for name in catalogs]
        return [
            counts,
            connection.execute("SELECT relname, relacl::text FROM pg_class ORDER BY oid").fetchall(),
            connection.execute(
                "SELECT rolname, rolconfig, rolvaliduntil FROM pg_roles"
                f" WHERE rolname {own('rolname')} ORDER BY 1"
            ).fetchall(),
            connection.execute(
                f"SELECT datname, datacl::text FROM pg_database WHERE datname {own('datname')} ORDER BY 1"
            ).fetchall(),
        ]


def is_refused(connection: psycopg.Connection[Any], text: str, *, prepare: bool = False) -> bool:
    try:
        connection.execute(text.encode(), prepare=prepare)
    except psycopg.Error:
        return True
    return False


def test_the_role_executes_what_was_looked_at(scene: Scene) -> None:
    """A function of another release of PostgreSQL fails this test, until it was looked at."""
    with scene.connect_past() as connection:
        found = connection.execute(
            "SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace"
            " AND provolatile <> 'i' AND has_function_privilege(oid, 'EXECUTE') ORDER BY 1"
        ).fetchall()
        assert [name for (name,) in found] == REVIEWED.split()
        # What computes from its arguments alone neither reads files nor tells of the server.
        computing = connection.execute(
            "SELECT proname FROM pg_proc WHERE provolatile = 'i' AND has_function_privilege(oid, 'EXECUTE')"
            " AND proname ~ '^(pg_(read|ls_|stat_|sleep|terminate|cancel|logical|replication)|lo_|dblink)'"
        ).fetchall()
        assert computing == []


def test_the_role_has_no_rights_but_to_look(scene: Scene) -> None:
    with scene.connect_past() as connection:
        role = connection.execute(
            "SELECT rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls, rolinherit"
            " FROM pg_roles WHERE rolname = CURRENT_USER"
        ).fetchone()
        assert role == (False,) * 6
        rights = connection.execute(
            "SELECT has_database_privilege(current_database(), 'CREATE'),"
            " has_database_privilege(current_database(), 'TEMP'),"
            " has_schema_privilege('public', 'CREATE'), has_language_privilege('plpgsql', 'USAGE'),"
            " (SELECT count(*) FROM pg_auth_members WHERE member = CURRENT_USER::regrole),"
            " (SELECT count(*) FROM pg_class"
            "   WHERE has_table_privilege(oid, 'INSERT, UPDATE, DELETE, TRUNCATE, MAINTAIN')),"
            " (SELECT count(*) FROM pg_class WHERE relowner = CURRENT_USER::regrole)"
        ).fetchone()
        assert rights == (False, False, False, False, 0, 0, 0)


def test_two_hundred_statements_that_write_change_nothing(scene: Scene) -> None:
    before = state_of(scene)
    assert len(WRITES) >= 200
    with scene.connect() as connection:
        for statement in WRITES:
            for text in (f"SET transaction_read_only = off; {statement}", statement):
                assert is_refused(connection, text, prepare=text == statement), text
    # The same past the port, where the server alone refuses. It lets a role change itself.
    with scene.connect_past() as inside:
        for statement in WRITES:
            if statement.startswith(OF_ITSELF):
                continue
            inside.execute("SET TRANSACTION READ WRITE")
            # Of some, such as a GRANT without the right to, PostgreSQL only warns.
            is_refused(inside, statement)
            inside.commit()
    assert state_of(scene) == before


@pytest.mark.parametrize("statement", HIDING)
def test_no_statement_hides_in_a_text(scene: Scene, statement: str) -> None:
    before = state_of(scene)
    with scene.connect() as connection:
        connection.execute("SET default_transaction_read_only = off")
        with pytest.raises(psycopg.Error):
            connection.execute(statement.encode())
    assert state_of(scene) == before


def test_other_clients_are_not_seen(scene: Scene) -> None:
    with scene.connect() as one, scene.connect() as other:
        one.execute("SELECT 'secret of one'")
        for what in (
            "SELECT query FROM pg_stat_activity",
            "SELECT * FROM pg_stat_get_activity(NULL)",
            "SELECT * FROM pg_locks",
            "SELECT pg_terminate_backend(1)",
            "SELECT pg_cancel_backend(1)",
            "SELECT set_config('work_mem', '1GB', false)",
            "SELECT pg_sleep(1)",
            "SELECT pg_advisory_lock(1)",
            "SELECT pg_notify('a', 'b')",
            "SELECT txid_current()",
            "SELECT * FROM pg_authid",
            "SELECT * FROM pg_db_role_setting",
            "SELECT pg_read_file('/etc/passwd')",
            "SELECT lo_import('/etc/passwd')",
            "SELECT query_to_xml('SELECT 1', true, true, '')",
            "SELECT current_setting('data_directory')",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                other.execute(what.encode())


def test_statements_that_fail_are_not_in_the_log_of_the_server(scene: Scene) -> None:
    """They could fill its disk."""
    with scene.connect() as connection:
        for name, value in (("log_min_error_statement", "panic"), ("log_min_messages", "fatal")):
            assert connection.execute(f"SHOW {name}".encode()).fetchone() == (value,)
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(f"SET {name} = debug5".encode())


def test_a_catalog_waits_briefly_for_who_reads_the_one_before(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "_MAKE", catalog._MAKE.replace("5s", "20ms"))
    place = {**django_connection.settings_dict, "OPTIONS": {}}
    with scene.connect_past() as connection:
        connection.execute("SELECT FROM proxy_logs")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            catalog.prepare_catalog(place, secret=settings.SECRET_KEY, connections=60)


def test_columns_have_types_and_comments(scene: Scene) -> None:
    with scene.connect() as connection:
        rows = connection.execute(
            "SELECT attname, format_type(atttypid, atttypmod), col_description(attrelid, attnum)"
            " FROM pg_attribute WHERE attrelid = 'proxy_logs_time'::regclass AND attnum > 0 ORDER BY attnum"
        ).fetchall()
    assert rows[0] == ("timestamp", "bigint", "request time, epoch ms")
    assert [name for name, _, _ in rows] == [*(column.name for column in COLUMNS), "day", "time", "expires"]
    assert rows[-2:] == [
        ("time", "timestamp without time zone", "request time, UTC"),
        ("expires", "timestamp without time zone", "expiry, UTC"),
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "",
        "-- nothing",
        "SELECT 'ALTER; DROP'",
        "(SELECT 1)",
        "SET DateStyle = 'ISO'",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
        "set time zone 'UTC'",
        "SET TIME ZONE DEFAULT",
        "SET client_encoding TO 'UTF8'",
        "SHOW ALL",
        "BEGIN READ ONLY",
        "CLOSE ALL",
        "UNLISTEN *",
        "RESET ALL",
        "DISCARD ALL",
        'SELECT "größe" FROM (VALUES (1)) AS x("größe")',
        "SELECT größe FROM x",
        'SELECT \'U&"x"\', u & "x"',
    ],
)
def test_what_drivers_send_is_let_through(statement: str) -> None:
    assert read_statement(statement).refusal is None


@pytest.mark.parametrize(
    "statement",
    [
        *("ALTER ROLE x", "SET work_mem = 1", "SET x.y = 1", "€ SELECT 1", "DO ''"),
        # It would be the log, which PostgreSQL has none of.
        *(r'SELECT count(*) FROM U&"proxy\005flogs"', r'SELECT 1 FROM public.u&"proxy!005flogs" UESCAPE "!"'),
    ],
)
def test_what_is_refused_before_the_server(statement: str) -> None:
    assert read_statement(statement).refusal is not None
