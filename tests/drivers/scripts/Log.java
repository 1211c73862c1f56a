import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

/** Read the log at PostgreSQL's port by pgjdbc. Arguments: host, port, database, password, authority. */
class Log {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.put("user", "anyone");
        properties.put("password", arguments[3]);
        properties.put("sslmode", "verify-full");
        properties.put("sslrootcert", arguments[4]);
        String address = "jdbc:postgresql://" + arguments[0] + ":" + arguments[1] + "/" + arguments[2];
        try (Connection connection = DriverManager.getConnection(address, properties)) {
            DatabaseMetaData data = connection.getMetaData();
            List<String> tables = new ArrayList<>();
            ResultSet found = data.getTables(null, "public", "%", new String[] {"TABLE", "VIEW"});
            while (found.next()) {
                tables.add(found.getString("TABLE_NAME"));
            }
            System.out.println("tables\t" + String.join(" ", tables));
            int columns = 0;
            found = data.getColumns(null, "public", "proxy_logs", "%");
            while (found.next()) {
                columns++;
            }
            System.out.println("columns\t" + columns);
            for (int time = 0; time < 8; time++) {
                String text = "SELECT sum(\"responseTimeMs\") AS total, count(*) AS n, max(time) AS last"
                    + " FROM proxy_logs_time WHERE \"statusCode\" = ? AND \"userName\" <> ?";
                try (PreparedStatement statement = connection.prepareStatement(text)) {
                    statement.setInt(1, 200);
                    statement.setString(2, "u2");
                    found = statement.executeQuery();
                    found.next();
                    System.out.println("sum\t" + found.getBigDecimal(1) + " " + found.getLong(2) + " "
                        + found.getTimestamp(3));
                }
            }
            connection.setAutoCommit(false);
            try (Statement statement = connection.createStatement()) {
                statement.setFetchSize(2);
                found = statement.executeQuery("SELECT day FROM proxy_logs ORDER BY day");
                int rows = 0;
                while (found.next()) {
                    rows++;
                }
                System.out.println("rows\t" + rows);
            }
            connection.commit();
        }
    }
}
