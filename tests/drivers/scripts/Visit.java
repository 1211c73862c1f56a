import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

/** Ask a Gateway by pgjdbc: a line of standard input is a statement and its parameters, as in visit.py. */
class Visit {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.put("user", arguments[2]);
        properties.put("password", arguments[3]);
        String address =
                "jdbc:postgresql://" + arguments[0] + ":" + arguments[1] + "/sales?sslmode=verify-full&" + arguments[4];
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        try (Connection connection = DriverManager.getConnection(address, properties)) {
            for (String line; (line = lines.readLine()) != null; ) {
                String[] parts = line.split("\t");
                try (PreparedStatement statement = connection.prepareStatement(parts[0])) {
                    for (int index = 1; index < parts.length; index++) {
                        statement.setInt(index, Integer.parseInt(parts[index]));
                    }
                    List<String> rows = new ArrayList<>();
                    if (statement.execute()) {
                        ResultSet result = statement.getResultSet();
                        while (result.next()) {
                            rows.add(result.getString(1));
                        }
                    }
                    out.println(String.join("\t", "rows", String.join("\t", rows)).strip());
                } catch (SQLException error) {
                    out.println("error\t" + error.getMessage().replaceAll("\\s+", " "));
                }
            }
        }
    }
}
